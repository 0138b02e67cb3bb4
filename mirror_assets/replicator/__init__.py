"""Comparing mirror and source: moves to the room `verify`."""
