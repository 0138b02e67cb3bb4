"""Dagster's resources; each wraps Dagster-free code."""
