"""Tests of the source room."""
