"""Exercises on a mirrored database, with tables of their own, that find out how Fabric applies landing files."""
