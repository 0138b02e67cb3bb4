"""Writes a first mirror.yaml: finds the tables of a lake, proposes their keys, and says what is missing."""
