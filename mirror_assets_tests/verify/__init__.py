"""Tests of the audits: each is shown failing."""
