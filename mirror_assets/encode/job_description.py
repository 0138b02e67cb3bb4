"""Describes jobs in Spark's UI and event log."""

from __future__ import annotations

from pyspark.sql import SparkSession


def describe_jobs(spark: SparkSession, text: str | None) -> None:
    """Describe the jobs that the calling thread starts from now on; None removes the description.

    Spark Connect has no such property.
    """
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.setJobDescription(text)
