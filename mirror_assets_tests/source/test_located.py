"""A log whose place a catalog says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from mirror_assets.lakes.access import Locate, Located, PlainAccess
from mirror_assets.lakes.errors import LOCATION_UNKNOWN
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises_row


def made(path: Path, commits: int) -> Located:
    for number in range(commits):
        write_deltalake(str(path), pa.table({"id": [number]}), mode="append")
    return Located(str(path), PlainAccess(str(path)))


def first_of(places: list[Located]) -> Locate:
    def locate(*, is_fresh: bool = False) -> Located:
        assert not is_fresh
        return places[0]

    return locate


def test_nothing_is_asked_before_it_is_needed(tmp_path: Path) -> None:
    asked: list[int] = []

    def locate(*, is_fresh: bool = False) -> Located:
        assert not is_fresh
        asked.append(1)
        return made(tmp_path / "t", 0)

    made(tmp_path / "t", 2)
    log = DeltaLog("catalog://main/t", locate=locate)
    assert asked == []
    assert log.uri == str(tmp_path / "t")
    assert log.has_commit(1)
    assert len(asked) == 1


def test_a_plan_and_what_is_read_for_it_are_of_one_place(tmp_path: Path) -> None:
    before, after = made(tmp_path / "a", 2), made(tmp_path / "b", 1)
    places = [before]
    log = DeltaLog("catalog://main/t", locate=first_of(places))
    assert log.state().version == 1
    places[0] = after
    assert (log.uri, log.has_commit(1), log.state(0).version) == (before.uri, True, 0)
    assert log.state().version == 0
    assert (log.uri, log.has_commit(1)) == (after.uri, False)


def test_a_table_that_moved_is_not_quiet(tmp_path: Path) -> None:
    before, after = made(tmp_path / "a", 1), made(tmp_path / "b", 1)
    places = [before]
    log = DeltaLog("catalog://main/t", locate=first_of(places))
    mark = log.tip_mark(0)
    assert mark is not None
    assert log.is_still_tip(mark)
    places[0] = after
    assert not log.is_still_tip(mark)


def test_the_catalogs_error_is_the_logs(tmp_path: Path) -> None:
    def unknown(*, is_fresh: bool = False) -> Located:
        assert not is_fresh
        raise LOCATION_UNKNOWN(table="sales.t", catalog="hive")

    log = DeltaLog("catalog://hive/sales.t", locate=unknown)
    for ask in (log.state, lambda: log.uri, lambda: log.has_commit(0)):
        with raises_row(LOCATION_UNKNOWN):
            ask()
    assert not list(tmp_path.iterdir())
