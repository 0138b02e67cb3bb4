"""Tables below a folder: every folder with a log, on disks and in stores, by few requests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from mirror_assets.features.init.find_folders import FoundTable, find_tables
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


def _paths(found: tuple[FoundTable, ...]) -> tuple[str, ...]:
    assert not any(table.hindrance for table in found)
    return tuple(table.path for table in found)


def _make(root: Path, *tables: str) -> PlainAccess:
    for table in tables:
        (root / table / "_delta_log").mkdir(parents=True)
    return PlainAccess(str(root))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        running.put("lake", *(f"{table}/_delta_log/{0:020d}.json" for table in _LOGS), *_OTHERS)
        yield running


def test_every_folder_with_a_log_is_a_table_but_hidden_and_nested_ones(tmp_path: Path) -> None:
    root = _make(tmp_path, *_LOGS)
    (tmp_path / "loose.txt").touch()
    (tmp_path / "plain").mkdir()
    assert _paths(find_tables(root)) == _FOUND


def test_a_root_is_a_path_or_a_file_address(tmp_path: Path) -> None:
    _make(tmp_path / "my lake", "orders")
    assert _paths(find_tables(PlainAccess((tmp_path / "my lake").as_uri()))) == ("orders",)


def test_a_root_that_is_a_table_is_found_with_an_empty_path(tmp_path: Path) -> None:
    assert _paths(find_tables(_make(tmp_path, "."))) == ("",)


@pytest.mark.parametrize(("depth", "found"), [(0, ()), (1, ("a",)), (2, ("a", "b/c"))])
def test_depth_counts_folders_below_the_root(tmp_path: Path, depth: int, found: tuple[str, ...]) -> None:
    assert _paths(find_tables(_make(tmp_path, "a", "b/c", "d/e/f"), depth)) == found


def test_a_root_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="No such file"):
        find_tables(PlainAccess(str(tmp_path / "nowhere")))


def test_a_folder_that_fails_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, scandir = _make(tmp_path, "closed", "open"), os.scandir

    def refusing(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert find_tables(root) == (FoundTable("closed", "Permission denied"), FoundTable("open"))


def test_tables_of_a_store_are_those_of_a_disk(server: S3Server) -> None:
    assert _paths(find_tables(PlainAccess("s3://lake", server.options))) == _FOUND
    assert _paths(find_tables(PlainAccess("s3://lake/sales", server.options))) == ("lines", "with blank")


def test_a_table_of_a_store_costs_one_request(server: S3Server) -> None:
    server.put("wide", *(f"t{number:02d}/_delta_log/{0:020d}.json" for number in range(30)))
    found = find_tables(PlainAccess("s3://wide", server.options), 1)
    assert len(found) == 30
    asked = [path for _, path in server.reads() if path.startswith("/wide")]
    # The root is asked for its log, and listed.
    assert len(asked) == 2 + 30


def test_a_bucket_that_is_not_there_is_an_error(server: S3Server) -> None:
    with pytest.raises(SourceUnreadable, match="nobucket"):
        find_tables(PlainAccess("s3://nobucket", server.options))


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
    assert _paths(find_tables(root)) == tuple(sorted(filter(is_found, tables)))
