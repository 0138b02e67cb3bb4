"""Tests of what Direct Lake needs from a table."""
