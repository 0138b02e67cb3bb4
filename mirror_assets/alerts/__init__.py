"""Alerts: what is wrong, grouped by cause, told to receivers once when it begins and once when it ends. No Dagster."""
