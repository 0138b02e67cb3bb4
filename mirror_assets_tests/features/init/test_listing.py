"""The folders that match a pattern, and those with a log, on disks and in stores, by few requests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mirror_assets.features.init.listing import Listing, list_folders
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.lakes.errors import SourceUnreadable
from mirror_assets_tests.source.s3_server import S3Server, s3_server

_LOGS = (
    "orders",
    "sales/lines",
    "sales/with blank",
    "a/b/deep",
    "a/b/c/too_deep",
    "orders/nested",
    "_tmp/hidden",
    "a/.hidden",
    "größe=1/x",
)
_OTHERS = ("plain/part-0.parquet", "loose.txt")
_FOUND = ("a/b/deep", "größe=1/x", "orders", "sales/lines", "sales/with blank")


def _tables(root: PlainAccess, depth: int = 3) -> tuple[str, ...]:
    found = list_folders(root, "/".join("*" * (depth + 1)))
    assert not found.unlisted
    return found.tables


def _make(root: Path, *tables: str) -> PlainAccess:
    for table in tables:
        (root / table / "_delta_log").mkdir(parents=True)
    return PlainAccess(str(root))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        running.put("lake", *(f"{table}/_delta_log/{0:020d}.json" for table in _LOGS), *_OTHERS)
        yield running


def test_tables_are_folders_with_a_log_but_hidden_and_nested_ones(tmp_path: Path, server: S3Server) -> None:
    root = _make(tmp_path / "my lake", *_LOGS)
    (tmp_path / "my lake" / "loose.txt").touch()
    (tmp_path / "my lake" / "plain").mkdir()
    assert _tables(root) == _tables(PlainAccess((tmp_path / "my lake").as_uri())) == _FOUND
    assert _tables(PlainAccess("s3://lake", server.options)) == _FOUND
    assert _tables(PlainAccess("s3://lake/sales", server.options)) == ("lines", "with blank")


def test_a_root_that_is_a_table_is_found_with_an_empty_path(tmp_path: Path) -> None:
    assert _tables(_make(tmp_path, ".")) == ("",)


@pytest.mark.parametrize(("depth", "found"), [(0, ()), (1, ("a",)), (2, ("a", "b/c"))])
def test_depth_counts_folders_below_the_root(tmp_path: Path, depth: int, found: tuple[str, ...]) -> None:
    assert _tables(_make(tmp_path, "a", "b/c", "d/e/f"), depth) == found


def test_a_root_that_can_not_be_listed_is_an_error(tmp_path: Path, server: S3Server) -> None:
    with pytest.raises(SourceUnreadable, match="No such file"):
        list_folders(PlainAccess(str(tmp_path / "nowhere")), "*")
    with pytest.raises(SourceUnreadable, match="nobucket"):
        list_folders(PlainAccess("s3://nobucket", server.options), "*")


@pytest.mark.parametrize("threads", [None, 4])
def test_a_folder_that_can_not_be_listed_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    root, scandir = _make(tmp_path, "closed", "open"), os.scandir

    def refusing(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with ThreadPoolExecutor(threads) as pool:
        found = list_folders(root, "*/*", pool if threads else None)
    assert found == Listing((), frozenset(["open"]), {"closed": "Permission denied"}, ("open",))


def test_each_folder_of_a_store_costs_one_request(server: S3Server) -> None:
    server.put("wide", *(f"t{number:02d}/_delta_log/{0:020d}.json" for number in range(30)))
    assert len(_tables(PlainAccess("s3://wide", server.options), 1)) == 30
    assert len([path for _, path in server.reads() if path.startswith("/wide")]) == 1 + 30


def test_folders_of_a_store_that_match_are_those_of_a_disk(server: S3Server, tmp_path: Path) -> None:
    paths = ("a/t1", "a/t2", "b/t1", "b/_tmp", "c d/t=1", "größe/x", "top/_delta_log/0", "top/inner")
    server.put("same", *(f"{path}/x" for path in paths), "loose")
    for path in paths:
        (tmp_path / path).mkdir(parents=True)
    store, disk = PlainAccess("s3://same", server.options), PlainAccess(str(tmp_path))
    for pattern in ("*", "*/*", "*/t1", "[ab]/t?", "*/_*", "nothing/*", "a/*/*"):
        assert list_folders(store, pattern) == list_folders(disk, pattern), pattern
    assert list_folders(disk, "*/*").paths == ("a/t1", "a/t2", "b/t1", "c d/t=1", "größe/x")
    assert list_folders(disk, "*/_*").paths == ("b/_tmp",)


_NAMES = st.sampled_from(("a", "b c", "_x", ".y", "z=1"))


@settings(max_examples=30)
@given(st.sets(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), max_size=8))
def test_found_are_the_outermost_tables_that_nothing_hides(
    tmp_path_factory: pytest.TempPathFactory, tables: set[str]
) -> None:
    def is_found(table: str) -> bool:
        steps = table.split("/")
        outer = any("/".join(steps[:count]) in tables for count in range(1, len(steps)))
        return len(steps) <= 3 and not outer and not any(step[0] in "._" for step in steps)

    root = _make(tmp_path_factory.mktemp("lake"), *tables)
    assert _tables(root) == tuple(sorted(filter(is_found, tables)))
