"""When a stream may go on with a checkpoint, and who may. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.history.checkpoint import Checkpoint, Checkpoints
from mirror_assets.history.record import Kept

KEPT = Kept(4, "id", 7, 9, "attempt", 12)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    """Where a stream has left its checkpoint behind KEPT."""
    made = Checkpoints(tmp_path / "checkpoints")
    _used(made.take(None)).leave(KEPT)
    return made


def _used(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, as Spark has written it."""
    Path(checkpoint.location).mkdir(parents=True)
    (Path(checkpoint.location) / "metadata").write_text("Spark's")
    return checkpoint


@pytest.mark.parametrize(
    "newest", [None, replace(KEPT, generation=5), replace(KEPT, table_id="other"), replace(KEPT, attempt="other")]
)
def test_behind_another_slice_a_stream_begins_anew(checkpoints: Checkpoints, newest: Kept | None) -> None:
    taken = checkpoints.take(newest)
    assert not taken.goes_on
    assert not Path(taken.location).exists()


def test_one_stream_alone_goes_on_with_what_was_left(checkpoints: Checkpoints) -> None:
    first, second = checkpoints.take(KEPT), checkpoints.take(KEPT)
    assert (first.goes_on, second.goes_on) == (True, False)
    assert (Path(first.location) / "metadata").read_text() == "Spark's"
    assert first.folder != second.folder


def test_what_a_stream_that_died_had_taken_is_not_gone_on_with(checkpoints: Checkpoints) -> None:
    checkpoints.take(KEPT)
    assert not checkpoints.take(KEPT).goes_on


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_note_is_none(checkpoints: Checkpoints, note: bytes) -> None:
    (path,) = checkpoints.folder.glob("*/stands.json")
    path.write_bytes(note)
    assert not checkpoints.take(KEPT).goes_on


def test_who_ends_well_clears_away_what_others_left(checkpoints: Checkpoints) -> None:
    _used(checkpoints.take(None))
    mine = _used(checkpoints.take(None))
    mine.leave(replace(KEPT, generation=5))
    assert list(checkpoints.folder.iterdir()) == [mine.folder]
    mine.discard()
    assert list(checkpoints.folder.iterdir()) == []
    mine.discard()
