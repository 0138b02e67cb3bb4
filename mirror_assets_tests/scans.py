"""The project's own reader, as tests and benchmarks call it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes


def scanned_changes(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """Return the change rows of commits `first` to `last`, with the times of the commits."""
    log = DeltaLog(uri)
    times = {version: log.time_ms(version) for version in range(first, last + 1)}
    return read_scan(spark, scan_changes(log, CommitRange(first, last), times_ms=times))
