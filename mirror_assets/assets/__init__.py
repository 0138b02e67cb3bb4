"""The assets of a table and their names. Thin: Dagster in, domain call, metadata out."""
