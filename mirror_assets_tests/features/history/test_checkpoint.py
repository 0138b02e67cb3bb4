"""When a stream may go on with a checkpoint, and who may. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.features.history.history_log import HistoryCommit
from mirror_assets.features.history.stream import StreamCheckpoint, take_checkpoint

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
