"""The assets of a table: source, change_feed, landing_zone, mirror. Thin: Dagster in, domain call, metadata out."""
