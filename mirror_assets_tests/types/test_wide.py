"""A table of a thousand columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.worlds.operations.features import FEED

_LAST = "c998"


def test_a_thousand_columns_land(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(spark, tmp_path)
    lab.configure()
    columns = {f"c{number}": pa.array([number, None, -number], pa.int64()) for number in range(999)}
    write_deltalake(lab.uri, pa.table({"id": pa.array([1, 2, 3], pa.int32()), **columns}), configuration=FEED)
    lab.mirror()
    source = DeltaTable(lab.uri)
    source.update(updates={_LAST: f"{_LAST} + 1"}, predicate="id = 1")
    source.delete("id = 3")
    lab.mirror()
    lab.replicator.poll()
    mirror = DeltaTable(str(tmp_path / "mirror" / "shop" / "orders")).to_pyarrow_table().sort_by("id")
    assert mirror.equals(DeltaTable(lab.uri).to_pyarrow_table().sort_by("id").select(mirror.column_names))
    assert (len(mirror.column_names), mirror[_LAST].to_pylist()) == (1000, [999, None])
