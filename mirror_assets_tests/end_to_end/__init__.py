"""Tests of the whole way, through Dagster and the command line."""
