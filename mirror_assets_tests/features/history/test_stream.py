"""A stream whose batches end within a commit stores each commit whole, even if it is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext, HistoryLog
from mirror_assets.features.history.with_spark import stream
from mirror_assets.features.history.with_spark.append import append_rows
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.features.history.sources import Place, keep, kept_rows, ranges
from mirror_assets_tests.features.history.test_keep import rows_of

_FEED_ON = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
_STATEMENTS = (
    f"CREATE TABLE {{t}} (id INT, part STRING) USING delta PARTITIONED BY (part) {_FEED_ON}",
    "INSERT INTO {t} SELECT /*+ REPARTITION(5, id) */ CAST(id AS INT), IF(id % 2 = 0, 'a', 'b') FROM range(40)",
    "DELETE FROM {t} WHERE id < 5",
    "OPTIMIZE {t}",
    "INSERT INTO {t} SELECT /*+ REPARTITION(5, id) */ CAST(id + 100 AS INT), 'a' FROM range(40)",
)


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Place:
    """A source of five versions; two of them insert many files."""
    made = Place(tmp_path)
    for statement in _STATEMENTS:
        spark.sql(statement.format(t=f"delta.`{made.source}`"))
    return made


def _by_slices(spark: SparkSession, place: Place) -> HistoryContext:
    made = place.context(lambda: spark, name="slices")
    keep(made)
    return made


def _by_stream(spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch) -> HistoryContext:
    monkeypatch.setattr(stream, "_FILES_PER_BATCH", 1)
    return place.context(lambda: spark, name="stream", stream=True)


def test_a_commit_that_is_spread_over_several_batches_is_kept_whole(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_slices, by_stream = _by_slices(spark, place), _by_stream(spark, place, monkeypatch)
    batches: list[int] = []
    take = stream._Batches._take

    def counted(self: stream._Batches, rows: DataFrame) -> None:
        batches.append(len({row[0] for row in rows.select("_commit_version").collect()}))
        take(self, rows)

    monkeypatch.setattr(stream._Batches, "_take", counted)
    kept = keep(by_stream)
    assert len(batches) > len(_STATEMENTS)  # some commit came in several batches
    assert [v for first, last in ranges(kept) for v in range(first, last + 1)] == [0, 1, 2, 3, 4]
    assert len(kept) > 1
    assert rows_of(kept_rows(spark, by_stream)) == rows_of(kept_rows(spark, by_slices))


def test_a_stream_that_dies_while_it_holds_half_a_commit_loses_and_doubles_nothing(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_slices, by_stream = _by_slices(spark, place), _by_stream(spark, place, monkeypatch)

    def die_behind_the_first(rows: DataFrame, history: HistoryLog, commit: HistoryCommit) -> HistoryCommit:
        if commit.generation > 1:
            raise SOURCE_UNAVAILABLE(uri=place.source, why="killed")
        return append_rows(rows, history, commit)

    with monkeypatch.context() as killed:
        killed.setattr(stream, "append_rows", die_behind_the_first)
        with raises_row(SOURCE_UNAVAILABLE):
            keep(by_stream)
    assert ranges(keep(by_stream))[-1][1] == 4
    assert rows_of(kept_rows(spark, by_stream)) == rows_of(kept_rows(spark, by_slices))
