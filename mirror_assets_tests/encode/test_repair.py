"""The differing keys of a repair: how many tasks read them again and again."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from mirror_assets.encode import repair
from mirror_assets.encode.repair import RepairSlice, repair_changes
from mirror_assets.encode.session import open_session
from mirror_assets.markers import Marker


@pytest.mark.usefixtures("spark")
def test_what_is_persisted_has_as_many_partitions_as_the_repair_has_parts() -> None:
    """Not as many as a shuffle of rows begins with: each of the queries on it would have a thousand tasks."""
    session = open_session({})
    rows = session.range(100).selectExpr("id AS key", "id % 2 AS source_rows", "1L AS mirror_rows")
    counts = (F.max(name).alias(name) for name in rows.columns[1:])
    differing = rows.groupBy("key").agg(*counts)
    slice_ = RepairSlice("shop.orders", 1, differing, {"key": "id"}, rows, (), 3)
    with repair._marked(slice_) as marked:
        assert marked.rdd.getNumPartitions() == 3
    assert repair_changes(slice_).counts == {Marker.UPSERT: 0, Marker.UPDATE: 50, Marker.DELETE: 50}
