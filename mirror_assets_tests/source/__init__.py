"""Tests of the package source."""
