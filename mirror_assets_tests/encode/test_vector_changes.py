"""Changes that only deletion vectors tell, against Delta's public reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.feed_reader import read_changes, read_changes_public
from mirror_assets_tests.smoke import smoke_first

_COLUMNS = ("id", "_change_type", "_commit_version", "_commit_timestamp")


def _rows(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.select(*_COLUMNS).collect())


def _table_with_vectors(spark: SparkSession, path: Path, more: str) -> str:
    """A table of 40 rows in one file, which lies in a folder whose name the log writes in another way."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, part STRING) USING delta PARTITIONED BY (part) TBLPROPERTIES "
        f"(delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true{more})"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, 'x y%z' FROM range(0, 40, 1, 1)")
    return str(path)


@pytest.mark.parametrize(
    "more", smoke_first(["", ", delta.enableInCommitTimestamps = true, delta.columnMapping.mode = 'name'"])
)
def test_files_whose_vectors_change_are_read_once_for_all_commits(
    spark: SparkSession, tmp_path: Path, more: str
) -> None:
    uri = _table_with_vectors(spark, tmp_path / "t", more)
    for number in range(4):
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE id IN ({number}, {39 - number})")
    spark.sql(f"INSERT INTO delta.`{uri}` SELECT id, 'other' FROM range(40, 60, 1, 1)")
    spark.sql(f"RESTORE delta.`{uri}` TO VERSION AS OF 3")  # brings rows back, and takes a whole file away
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id IN (2, 37)")
    vectors = (2, 3, 4, 5, 7, 8)
    assert len(_rows(read_changes(spark, uri, 1, 8, vectors))) == 40 + 8 + 20 + (20 + 4) + 2
    for first, last in ((1, 8), (4, 7), (8, 8)):
        assert _rows(read_changes(spark, uri, first, last, vectors)) == _rows(
            read_changes_public(spark, uri, first, last)
        )
