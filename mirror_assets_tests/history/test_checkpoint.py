"""When a stream's checkpoint may be used. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.history.checkpoint import Checkpoint
from mirror_assets.history.record import Kept

KEPT = Kept(4, "id", 7, 9, "attempt", 12)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    (tmp_path / "checkpoint" / "spark").mkdir(parents=True)
    return Checkpoint(tmp_path / "checkpoint")


def test_it_is_used_only_behind_the_slice_that_it_was_left_at(checkpoint: Checkpoint) -> None:
    assert not checkpoint.stands_behind(KEPT)
    checkpoint.mark(KEPT)
    assert checkpoint.stands_behind(KEPT)
    assert not checkpoint.stands_behind(None)
    for other in (replace(KEPT, generation=5), replace(KEPT, table_id="other"), replace(KEPT, attempt="other")):
        assert not checkpoint.stands_behind(other)


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_note_is_none(checkpoint: Checkpoint, note: bytes) -> None:
    (checkpoint.folder / "stands.json").write_bytes(note)
    assert not checkpoint.stands_behind(KEPT)


def test_what_is_thrown_away_is_gone_whole(checkpoint: Checkpoint) -> None:
    checkpoint.mark(KEPT)
    checkpoint.discard()
    assert not checkpoint.folder.exists()
    checkpoint.discard()
