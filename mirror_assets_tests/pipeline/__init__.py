"""Tests of one table's way from log to landing files."""
