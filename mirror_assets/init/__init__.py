"""Writes a first mirror.yaml: surveys the tables of a lake, proposes their keys, and says what is missing."""
