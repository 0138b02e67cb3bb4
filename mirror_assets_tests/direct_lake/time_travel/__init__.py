"""Tests of points in a table's history."""
