"""Logs with compacted commits, which are read by the commits themselves: so do the feed and the log's own reader."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.delta_reader import read_version
from mirror_assets_tests.source.handmade import commit_file


def test_a_snapshot_is_what_the_commits_say_whatever_they_were_compacted_to(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The compacted file has its commits in the wrong order: what the second removes is there again."""
    for number in range(3):
        rows = pa.table({"id": [number]})
        write_deltalake(tmp_path, rows, mode="append" if number == 2 else "overwrite")
    newest_first = [commit_file(tmp_path, version).read_text().strip() for version in (1, 0)]
    (tmp_path / "_delta_log" / f"{0:020d}.{1:020d}.compacted.json").write_text("\n".join(newest_first))
    assert DeltaLog(str(tmp_path)).state().rows == 2
    assert sorted(row["id"] for row in read_version(spark, str(tmp_path), 2).collect()) == [1, 2]
