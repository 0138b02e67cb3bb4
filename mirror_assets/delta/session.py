"""What a Spark session needs to read Delta tables and to write landing files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from pyspark.sql import SparkSession

# Delta's Spark artefacts carry Spark's minor version in their name since Delta 4.1.
_SPARK_LINE, _SCALA = "4.2", "2.13"


def delta_package() -> str:
    """The Maven coordinate of Delta's JARs for the installed delta-spark."""
    return f"io.delta:delta-spark_{_SPARK_LINE}_{_SCALA}:{version('delta-spark')}"


def spark_settings(extra: Mapping[str, str] | None = None, packages: Sequence[str] = ()) -> dict[str, str]:
    """Settings of an embedded session, overridden by `extra`; Delta's default of 50 partitions costs seconds.

    `packages` are Maven coordinates that it needs beside Delta's.
    """
    settings = {
        # A task may fail three times before the job does, as on a cluster: by itself, `local[*]` allows none.
        "spark.master": "local[*,4]",
        "spark.app.name": "mirror-assets",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.jars.packages": ",".join((delta_package(), *packages)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # The feed is read from commits. Files of compacted ones say the same, or their writer was wrong.
        "spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false",
        # VACUUM lists a folder in as many tasks, however small it is: by default 10,000, which take minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
        "spark.sql.session.timeZone": "UTC",
        # Remembering where in Python each column was made costs several calls of the JVM for each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.log.level": "ERROR",
    }
    return settings | dict(extra or {})


def open_session(settings: Mapping[str, str]) -> SparkSession:
    """The running session, or a new one with these settings."""
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
