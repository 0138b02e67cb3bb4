"""The watch itself: it is content with what the protocol does, and says what is wrong with anything else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.landing.names import PROCESSED
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landing.epochs import loading
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.worlds.histories.watch import Watch


class Watched:
    """Two slices of two files, landed and looked at; the first two files have been moved on."""

    def __init__(self, root: Path) -> None:
        self.store = LocalStore(root)
        self.watch = Watch(self.store, TABLE)
        for last in (7, 8):
            drive(publish(TABLE, stage(self.store, position_of(self.store), last, parts=2), CHECKS), self.store)
            self.watch.look()
        self.path(1, PROCESSED).parent.mkdir()
        for number in (1, 2):
            self.path(number).rename(self.path(number, PROCESSED))

    def path(self, number: int, folder: str = "") -> Path:
        """Where a landing file is, or was."""
        path = self.store.local_path(TABLE.landing_file(number))
        return path.parent / folder / path.name


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Watched(tmp_path)


def test_files_that_move_on_and_another_epoch_are_fine(watched: Watched) -> None:
    watched.watch.look()
    drive(loading(TABLE), watched.store)
    watched.watch.look()
    assert watched.watch.landed == 4


def _reuse(watched: Watched) -> None:
    watched.path(1, PROCESSED).unlink()
    shutil.copy(watched.path(4), watched.path(1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda w: shutil.copy(w.path(1, PROCESSED), w.path(1)), "number 1 landed twice"),
        (lambda w: shutil.copy(w.path(4), w.path(6)), "gap before number 6"),
        (lambda w: w.path(4).write_bytes(w.path(3).read_bytes()), "number 4 landed twice, or was changed"),
        (lambda w: w.path(5).write_bytes(w.path(4).read_bytes()[:-9]), "number 5 is partial"),
        (lambda w: shutil.copy(w.path(4), w.path(5)), "number 5 is not among what its generation committed"),
        (_reuse, "number 1 landed twice, or was changed"),
    ],
)
def test_anything_else_is_named(watched: Watched, damage: Callable[[Watched], object], message: str) -> None:
    damage(watched)
    with pytest.raises(AssertionError, match=message):
        watched.watch.look()
