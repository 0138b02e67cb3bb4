"""Checks that read back what was written, independently of the code that wrote it. No Dagster."""
