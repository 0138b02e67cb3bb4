"""Tests of the package history."""
