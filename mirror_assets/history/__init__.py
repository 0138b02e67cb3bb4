"""The change feed of a source, kept for ever in an append-only Delta table (docs/history.md). No Dagster, no zone."""
