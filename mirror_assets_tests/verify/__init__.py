"""Tests of the checks: each is shown failing."""
