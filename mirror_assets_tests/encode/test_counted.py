"""Counts beside a write without rows, which adaptive execution never counts: some writers add files without rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first

_COLUMNS = pa.schema([("id", pa.int32()), ("name", pa.string()), ("amount", pa.float64())])


def _add_empty_file(lab: Lab) -> None:
    """Commit a file without rows and without statistics."""
    file = Path(lab.uri, f"empty-{lab.context.log.state().version}.parquet")
    pq.write_table(_COLUMNS.empty_table(), file)
    facts = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 0}
    log = Path(lab.uri, "_delta_log", f"{lab.context.log.state().version + 1:020d}.json")
    actions = {"commitInfo": {"timestamp": 0, "operation": "WRITE"}}, {"add": facts | {"dataChange": True}}
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")


@pytest.mark.parametrize("compact", smoke_first(["false", "true"]))
def test_a_file_without_rows_lands_as_nothing(adaptive_spark: SparkSession, tmp_path: Path, compact: str) -> None:
    lab = Lab(adaptive_spark, tmp_path)
    lab.configure(f"compact: {compact}", "slices: {max_commits: 100}\n  files: {target_rows: 10}")
    lab.create()
    lab.mirror()
    _add_empty_file(lab)
    lab.mirror()
    assert lab.manifest().covered == lab.context.log.state().version
    many = "INSERT INTO {{t}} SELECT CAST(id AS INT), 'n', 1 FROM range({}, {})"
    lab.sql(many.format(100, 200))
    _add_empty_file(lab)
    lab.sql(many.format(200, 300))
    (landed,) = lab.mirror()
    assert landed.record.markers.total == 200
    assert lab.is_equal
