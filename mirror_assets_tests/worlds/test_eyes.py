"""What the eyes take for wrong, whoever reports to them: a silent error here would fail no other test."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.names import SliceKey, landing_name
from mirror_assets.landing.state import CommitPosition
from mirror_assets_tests.landing.staging import INCARNATION, hex_id, part_bytes, receipt_for
from mirror_assets_tests.worlds.eyes import Eyes, receipt_of
from mirror_assets_tests.worlds.kills.folder_watch import FolderWatch


def _file(index: int, first_number: int = 1, incarnation: str = INCARNATION) -> bytes:
    position = CommitPosition(1, incarnation, 1, first_number, -1)
    return part_bytes(receipt_for(position, SliceKey(1, 0, 7), hex_id("one")), index)


_NEXT_EPOCH = {1: _file(0, incarnation=hex_id("two"))}
_TWO = {1: _file(0), 2: _file(1)}


@given(st.lists(st.integers(1, 6), max_size=6))
def test_only_one_number_after_another_is_right(numbers: list[int]) -> None:
    eyes = Eyes()
    for number in numbers:
        eyes.appeared(number, None)
    in_order = all(after == before + 1 for before, after in pairwise([0, *numbers]))
    assert (eyes.wrong == []) == in_order


def test_no_part_of_a_file_is_whole() -> None:
    whole = _file(0)
    assert receipt_of(whole)
    assert not any(receipt_of(whole[:size]) for size in range(0, len(whole), 7))


@pytest.mark.parametrize(
    ("shown", "wrong"),
    [
        (({1: _file(0)}, _TWO, {2: _file(1)}, {}), []),
        ((_TWO, {}, _NEXT_EPOCH), []),
        (({1: _file(0)[:-1]},), ["1 was visible before it was whole"]),
        ((_TWO, {1: _file(0), 2: _file(0)}), ["2 landed twice, or was changed"]),
        ((_TWO, {1: _file(0)}, _TWO), ["2 landed twice, or was changed"]),
        (({1: _file(0), 3: _file(2)},), ["3 landed after 1"]),
        (({1: _file(0, first_number=2)},), ["1 is of a slice that begins with 2"]),
        ((_TWO, {}, _NEXT_EPOCH, _NEXT_EPOCH | {2: _file(1)}), ["2 is of another epoch"]),
        ((_TWO, _NEXT_EPOCH | {2: _file(1)}), ["2 is of an ended epoch"]),
    ],
)
def test_what_is_shown_must_be_whole_the_next_number_and_stay_as_it_is(
    shown: tuple[dict[int, bytes], ...], wrong: list[str]
) -> None:
    eyes = Eyes()
    for files in shown:
        eyes.see(files.items())
    assert eyes.wrong == wrong


def test_a_changed_or_unseen_file_is_reported_at_the_end() -> None:
    eyes = Eyes()
    eyes.appeared(1, _file(0))
    eyes.recognise(1, _file(0))
    assert eyes.wrong == []
    eyes.recognise(1, _file(1))
    eyes.recognise(2, _file(0))
    assert eyes.wrong == ["1 is not what it was when it landed", "2 was never seen to land"]


def _land(folder: Path, number: int = 1) -> Path:
    (folder / "_staged").write_bytes(_file(number))
    return (folder / "_staged").rename(folder / landing_name(number))


@pytest.mark.parametrize(
    ("touch", "wrong"),
    [
        (lambda folder: (folder / "_ProcessedFiles").mkdir(), set()),
        (lambda folder: (folder / landing_name(2)).write_bytes(_file(2)), {"2 was written while it was visible"}),
        (lambda folder: (folder / landing_name(1)).write_bytes(b"X"), {"1 was written while it was visible"}),
        (lambda folder: (folder / landing_name(1)).unlink() or _land(folder), {"1 landed twice, or was changed"}),
    ],
    ids=["nothing", "written under its name", "changed", "landed twice"],
)
def test_a_watch_on_a_folder_of_this_machine_reports_all_of_it(
    tmp_path: Path, touch: Callable[[Path], object], wrong: set[str]
) -> None:
    with FolderWatch(tmp_path, Eyes()) as watch:
        deadline = time.monotonic() + 10
        _land(tmp_path)
        while watch.eyes.newest < 1 and time.monotonic() < deadline:  # what is deleted before it is read has no content
            time.sleep(0.01)
        touch(tmp_path)
        while len(watch.eyes.wrong) < len(wrong) and time.monotonic() < deadline:
            time.sleep(0.01)
    # What is read while it is changed may be partial, too.
    assert set(watch.eyes.wrong) - {"1 was visible before it was whole", "2 was visible before it was whole"} == wrong
