"""Delta's own public readers: what the project's reader is compared with."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def read_version(spark: SparkSession, uri: str, at: int) -> DataFrame:
    """Return the table as of version `at`."""
    return spark.read.format("delta").option("versionAsOf", at).load(uri)


def read_changes(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """Return the change data feed of commits `first` to `last`."""
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", last)
        .load(uri)
    )
