"""Partition columns that another session's time zone has generated: the condition decides by the rows alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pipeline.test_expressions import _mirrored_rows

_ROWS = (
    "INSERT INTO delta.`{}` (id, at) VALUES ({}, timestamp '2024-01-15T20:00:00-05:00'), "
    "({}, timestamp '2024-01-15T12:00:00Z')"
)


@pytest.mark.parametrize("changes", ["feed", "files"])
def test_rows_of_another_zones_day_are_read(spark: SparkSession, tmp_path: Path, changes: str) -> None:
    """A day of New York begins five hours later: a filter by the day that this session would generate loses rows."""
    lab, writer = Lab(spark, tmp_path), spark.newSession()
    writer.conf.set("spark.sql.session.timeZone", "America/New_York")
    made = DeltaTable.create(writer).location(lab.uri).property("delta.enableChangeDataFeed", "true")
    made = made.addColumn("id", "INT").addColumn("at", "TIMESTAMP").partitionedBy("day")
    made.addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)").execute()
    writer.sql(_ROWS.format(lab.uri, 1, 2))
    lab.configure(f"changes: {changes}\n    where: at >= timestamp '2024-01-16 00:00:00'")
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [1]
    writer.sql(_ROWS.format(lab.uri, 3, 4))
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [1, 3]
    writer.sql(f"DELETE FROM delta.`{lab.uri}` WHERE id = 1")
    lab.mirror()
    assert [row["id"] for row in _mirrored_rows(lab)] == [3]
    assert lab.is_equal
