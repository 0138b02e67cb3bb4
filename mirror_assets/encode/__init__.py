"""Encoders: from a slice of the source to ordered, marked Parquet parts, on Spark."""
