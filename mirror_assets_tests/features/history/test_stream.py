"""When a stream may go on with a checkpoint, and who may. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext, HistoryLog
from mirror_assets.features.history.with_spark import stream
from mirror_assets.features.history.with_spark.append import append_rows
from mirror_assets.features.history.with_spark.stream import StreamCheckpoint, take_checkpoint
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.features.history.sources import Place, keep, kept_rows, ranges
from mirror_assets_tests.features.history.test_keep import rows_of

KEPT = HistoryCommit(4, "id", 7, 9, "attempt", 12)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Where a stream has left its checkpoint behind KEPT."""
    made = tmp_path / "checkpoints"
    _used(take_checkpoint(made, None)).leave(KEPT)
    return made


def _used(checkpoint: StreamCheckpoint) -> StreamCheckpoint:
    """The checkpoint, as Spark has written it."""
    _sparks(checkpoint).mkdir(parents=True)
    (_sparks(checkpoint) / "metadata").write_text("Spark's")
    return checkpoint


def _sparks(checkpoint: StreamCheckpoint) -> Path:
    """Spark's own folder, which Spark gets as an address."""
    return Path(checkpoint.location.removeprefix("file://"))


@pytest.mark.parametrize(
    "newest", [None, replace(KEPT, generation=5), replace(KEPT, table_id="other"), replace(KEPT, attempt="other")]
)
def test_after_another_slice_a_stream_starts_with_an_empty_checkpoint(
    checkpoints: Path, newest: HistoryCommit | None
) -> None:
    taken = take_checkpoint(checkpoints, newest)
    assert not taken.is_continued
    assert not _sparks(taken).exists()


def test_one_stream_alone_is_continued_with_what_was_left(checkpoints: Path) -> None:
    first, second = take_checkpoint(checkpoints, KEPT), take_checkpoint(checkpoints, KEPT)
    assert (first.is_continued, second.is_continued) == (True, False)
    assert (_sparks(first) / "metadata").read_text() == "Spark's"
    assert first.folder != second.folder


def test_what_a_stream_that_died_had_taken_is_not_gone_on_with(checkpoints: Path) -> None:
    take_checkpoint(checkpoints, KEPT)
    assert not take_checkpoint(checkpoints, KEPT).is_continued


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_note_is_none(checkpoints: Path, note: bytes) -> None:
    (path,) = checkpoints.glob("*/stands.json")
    path.write_bytes(note)
    assert not take_checkpoint(checkpoints, KEPT).is_continued


def test_who_ends_well_clears_away_what_others_left(checkpoints: Path) -> None:
    _used(take_checkpoint(checkpoints, None))
    mine = _used(take_checkpoint(checkpoints, None))
    mine.leave(replace(KEPT, generation=5))
    assert list(checkpoints.iterdir()) == [mine.folder]
    mine.discard()
    assert list(checkpoints.iterdir()) == []
    mine.discard()


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
