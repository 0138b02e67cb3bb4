"""Verdicts on what was written: read back from the files, independently of the code that wrote them. No Dagster."""
