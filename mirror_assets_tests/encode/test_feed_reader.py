"""The fast reader against Delta's public one, over random histories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.feed_reader import ChangeFeed, read_changes, read_changes_public
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.encode.histories import History

# One process makes the histories once for all tests that read them.
pytestmark = pytest.mark.xdist_group("random histories")


def _rows(frame: DataFrame, columns: list[str]) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.select(*columns).collect())


@pytest.fixture(scope="module", params=[False, True], ids=["change files", "deletion vectors"])
def history(request: pytest.FixtureRequest, history_of: Callable[[int, bool], History]) -> History:
    """Commits of any kind; their changes are in files of changes, or follow from deletion vectors."""
    return history_of(2, request.param)


def test_the_fast_reader_gives_the_rows_of_the_public_one(spark: SparkSession, history: History) -> None:
    columns = ["id", "part", "name", "amount", "_change_type", "_commit_version"]
    for first in range(1, history.tip + 1, 3):
        last = min(first + 3, history.tip)
        commits = DeltaLog(history.uri).commits(first, last)
        vectors = tuple(commit.version for commit in commits if commit.deletion_vectors)
        fast = _rows(read_changes(spark, history.uri, first, last, vectors), columns)
        assert fast == _rows(read_changes_public(spark, history.uri, first, last), columns)


def test_a_feed_read_in_parts_is_the_feed(spark: SparkSession, history: History) -> None:
    columns = ["id", "part", "name", "amount", "_change_type", "_commit_version"]
    vectors = [commit.version for commit in DeltaLog(history.uri).commits(1, history.tip) if commit.deletion_vectors]
    for compared in ((), tuple(vectors[::2])):
        feed = ChangeFeed(spark, history.uri, history.tip, compared)
        for first, last in ((1, 1), (2, 4), (5, history.tip)):
            public = read_changes_public(spark, history.uri, first, last)
            assert _rows(feed.rows(first, last), columns) == _rows(public, columns)


def test_a_part_of_a_feed_opens_no_other_file(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    for id_ in range(3):
        spark.sql(f"INSERT INTO delta.`{uri}` VALUES ({id_})")
    of_second = ChangeFeed(spark, uri, 3).rows(2, 2)
    first, second, third = ({file.path for file in DeltaLog(uri).data_files(version)} for version in (1, 2, 3))
    for path in third - (second - first):
        (tmp_path / "t" / path).unlink()
    assert [row["id"] for row in of_second.collect()] == [1]


def test_the_schema_is_that_of_the_last_version(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (1)")
    spark.sql(f"ALTER TABLE delta.`{uri}` ADD COLUMNS (added STRING)")
    assert "added" not in read_changes(spark, uri, 1, 1).columns
    assert "added" in read_changes(spark, uri, 1, 2).columns
