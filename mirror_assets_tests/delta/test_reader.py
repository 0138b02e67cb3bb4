"""The fast reader against Delta's public one, over random histories."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.delta.reader import read_changes, read_changes_public, sub_ranges
from mirror_assets_tests.delta.histories import History, random_history


def _rows(frame: DataFrame, columns: list[str]) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.select(*columns).collect())


@given(st.integers(0, 50), st.integers(0, 100), st.sets(st.integers(0, 150)))
def test_sub_ranges_follow_one_another_with_few_vectors_each(first: int, more: int, versions: set[int]) -> None:
    last = first + more
    vectors = {version for version in versions if first <= version <= last}
    ranges = sub_ranges(first, last, tuple(vectors))
    assert [version for begin, end in ranges for version in range(begin, end + 1)] == list(range(first, last + 1))
    assert all(len(vectors & set(range(begin, end + 1))) <= 8 for begin, end in ranges)
    assert len(ranges) == max(1, -(-len(vectors) // 8))


def test_many_deletion_vectors_are_read_in_turn(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(
        f"CREATE TABLE delta.`{uri}` USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, "
        "delta.enableDeletionVectors = true) AS SELECT id FROM range(0, 40, 1, 1)"
    )
    for number in range(10):
        spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = {number}")
    columns, vectors = ["id", "_change_type", "_commit_version"], tuple(range(1, 11))
    rows = _rows(read_changes(spark, uri, 1, 10, vectors), columns)
    assert len(rows) == 10
    assert rows == _rows(read_changes_public(spark, uri, 1, 10), columns)


@pytest.mark.parametrize("deletion_vectors", [False, True])
def test_the_fast_reader_gives_the_rows_of_the_public_one(
    spark: SparkSession, tmp_path: Path, *, deletion_vectors: bool
) -> None:
    history: History = random_history(spark, tmp_path / "t", seed=7, commits=8, deletion_vectors=deletion_vectors)
    columns = ["id", "part", "name", "amount", "_change_type", "_commit_version"]
    for first in range(1, history.tip + 1, 3):
        last = min(first + 3, history.tip)
        fast = _rows(read_changes(spark, history.uri, first, last), columns)
        assert fast == _rows(read_changes_public(spark, history.uri, first, last), columns)


def test_the_schema_is_that_of_the_last_version(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1)")
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (added STRING)")
    assert "added" not in read_changes(spark, uri, 1, 1).columns
    assert "added" in read_changes(spark, uri, 1, 2).columns
