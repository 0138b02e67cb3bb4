"""Rows of one key that can't follow one another, in parts written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_assets.markers import Marker
from mirror_assets.verify.repeated_keys import inspect_keys
from mirror_assets.verify.uniqueness import key_uniqueness
from mirror_assets_tests.verify.rows import Row, staged_rows

_INSERT, _UPDATE, _DELETE = int(Marker.INSERT), int(Marker.UPDATE), int(Marker.DELETE)
_COMMITS = 100


def _problems(folder: Path, parts: list[list[Row]], share_rows: int = 1_000) -> str:
    staged = staged_rows(folder, parts)
    return key_uniqueness(staged, inspect_keys(staged, lambda: _COMMITS, share_rows)).message


@pytest.mark.parametrize(
    ("markers", "problem"),
    [
        ([_INSERT, _INSERT], "is inserted while it is there"),
        ([_UPDATE, _INSERT], "is inserted while it is there"),
        ([_DELETE, _UPDATE], "is updated twice in one commit, or while it is not there"),
        ([_DELETE, _DELETE], "is deleted twice in one commit, or while it is not there"),
    ],
)
def test_what_cannot_follow_is_named_with_its_place(tmp_path: Path, markers: list[int], problem: str) -> None:
    first, second = markers
    rows: list[list[Row]] = [[(1, "a", _UPDATE), (7, "b", first)], [(1, "b", _INSERT), (7, "b", second)]]
    assert _problems(tmp_path, rows) == f"key «id=7, place='b'» {problem}" + (
        ", so the source has two rows of it: row 1 of part-00001.parquet"
        if second == _INSERT
        else ": row 1 of part-00001.parquet"
    )


_LIVES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.booleans()), max_size=30)


@given(_LIVES, st.integers(1, 4), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_what_can_follow_passes_and_any_row_less_may_not(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, str, bool]], parts: int, data: st.DataObject
) -> None:
    there: dict[tuple[int, str], bool] = {}
    rows: list[Row] = []
    for id_, place, stays in drawn:
        was_there = there.get((id_, place), len(rows) % 2 == 0)
        rows.append((id_, place, (_UPDATE if stays else _DELETE) if was_there else _INSERT))
        there[id_, place] = stays or not was_there
    size = -(-len(rows) // parts) or 1
    cut = [rows[start : start + size] for start in range(0, len(rows), size)]
    assert _problems(tmp_path_factory.mktemp("slice"), cut) == ""
    twice = [row for row in rows if row[2] != _UPDATE]
    if twice:
        again = [*rows, data.draw(st.sampled_from(twice))]
        last = [row[2] for row in rows if row[:2] == again[-1][:2]][-1]
        wrong = (last != _DELETE) == (again[-1][2] == _INSERT)
        assert (_problems(tmp_path_factory.mktemp("slice"), [again]) != "") == wrong
