"""What the watch on a folder of this machine sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mirror_assets.landing.names import landing_name
from mirror_assets_tests.landing.staging import part_bytes
from mirror_assets_tests.worlds.kills.eyes import Eyes
from mirror_assets_tests.worlds.kills.folder_watch import FolderWatch
from mirror_assets_tests.worlds.kills.test_eyes import RECEIPT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The table folder, which is watched."""
    return tmp_path


@pytest.fixture
def eyes(folder: Path) -> Iterator[Eyes]:
    """What the watch reports to."""
    with FolderWatch(folder, Eyes()) as watch:
        yield watch.eyes


def land(folder: Path, number: int) -> Path:
    """Move a whole file to its number."""
    staged = folder / "_staged"
    staged.write_bytes(part_bytes(RECEIPT, number))
    return staged.rename(folder / landing_name(number))


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_that_are_moved_in_whole_are_right(eyes: Eyes, folder: Path) -> None:
    for number in (1, 2, 3):
        land(folder, number)
    until(lambda: eyes.newest == 3)
    assert eyes.wrong == []


def test_a_file_written_under_its_visible_name_is_reported(eyes: Eyes, folder: Path) -> None:
    (folder / landing_name(1)).write_bytes(part_bytes(RECEIPT, 1))
    until(lambda: eyes.wrong)
    assert set(eyes.wrong) == {"1 was written while it was visible"}


def test_a_visible_file_that_is_changed_is_reported(eyes: Eyes, folder: Path) -> None:
    landed = land(folder, 1)
    until(lambda: eyes.newest == 1)
    with landed.open("r+b") as file:
        file.write(b"X")
    until(lambda: eyes.wrong)
    assert set(eyes.wrong) == {"1 was written while it was visible"}


def test_a_number_that_lands_again_after_its_file_was_deleted_is_reported(eyes: Eyes, folder: Path) -> None:
    land(folder, 1).unlink()
    land(folder, 1)
    until(lambda: eyes.wrong)
    assert eyes.wrong == ["1 landed twice"]


def test_what_is_not_a_landing_file_is_ignored(eyes: Eyes, folder: Path) -> None:
    (folder / "_mirror.json").write_text("{}")
    (folder / "_ProcessedFiles").mkdir()
    (folder / "_ProcessedFiles" / landing_name(7)).write_bytes(b"")
    land(folder, 1)
    until(lambda: eyes.newest == 1)
    assert eyes.wrong == []
