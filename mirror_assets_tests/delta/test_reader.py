"""The fast reader against Delta's public one, over random histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.reader import read_changes, read_changes_public
from mirror_assets_tests.delta.histories import History, random_history


def _rows(frame: DataFrame, columns: list[str]) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.select(*columns).collect())


@pytest.mark.parametrize("deletion_vectors", [False, True])
def test_the_fast_reader_gives_the_rows_of_the_public_one(
    spark: SparkSession, tmp_path: Path, *, deletion_vectors: bool
) -> None:
    history: History = random_history(spark, tmp_path / "t", seed=7, commits=8, deletion_vectors=deletion_vectors)
    columns = ["id", "part", "name", "amount", "_change_type", "_commit_version"]
    for first in range(1, history.tip + 1, 3):
        last = min(first + 3, history.tip)
        commits = SourceLog(history.uri).commits(first, last)
        vectors = tuple(commit.version for commit in commits if commit.deletion_vectors)
        fast = _rows(read_changes(spark, history.uri, first, last, vectors), columns)
        assert fast == _rows(read_changes_public(spark, history.uri, first, last), columns)


def test_the_schema_is_that_of_the_last_version(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1)")
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (added STRING)")
    assert "added" not in read_changes(spark, uri, 1, 1).columns
    assert "added" in read_changes(spark, uri, 1, 2).columns
