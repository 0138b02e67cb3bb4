"""The change feed of a source, retained in an append-only Delta table (docs/history.md). No Dagster, no zone."""
