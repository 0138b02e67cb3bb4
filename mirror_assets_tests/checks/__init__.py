"""Asset checks as Dagster runs them."""
