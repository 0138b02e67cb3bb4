"""Sabotage: one fault at a time in scans, ledger, type table or encoder, and the check that finds it."""
