"""Tests of maintenance plans."""
