"""Tests of the source side."""
