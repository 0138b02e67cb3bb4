"""Tests of the framing effect."""
