"""Proof (c): long histories of real tables and files, of changes, runs, faults and rebuilds in any order."""
