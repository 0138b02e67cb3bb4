"""Alerts: problems grouped by cause; receivers get one message when one starts and one when it ends. No Dagster."""
