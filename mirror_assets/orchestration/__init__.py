"""Dagster: assets, asset checks, sensors, jobs, schedules and resources; thin around the pipeline."""
