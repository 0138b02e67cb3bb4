"""Pictures of a table as PNG, for metadata and notebooks; drawing one needs matplotlib (extra `plots`)."""
