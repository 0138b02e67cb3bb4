"""Folders of an object store: by few requests, counted in the server's log."""

from __future__ import annotations

import os
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from mirror_assets.errors import RetryError, SettingError
from mirror_assets.features.init import found_places as places
from mirror_assets.features.init.finding import FolderKind, PlaceFinding, scan
from mirror_assets.features.init.found_places import Place, list_folders
from mirror_assets.lakes.access import Access, PlainAccess
from mirror_assets.source.actions import Metadata
from mirror_assets.source.delta_rs import newest_metadata
from mirror_assets.source.find_folders import match_folders
from mirror_assets_tests.source.s3_server import S3Server, s3_server
from mirror_assets_tests.worlds.disk_lake import DiskLake


def folders(root: str, pattern: str, access: Callable[[str], Access]) -> Place:
    """The folders of a root as a place."""
    listing = partial(list_folders, access(root), pattern)
    return Place(f"{root} {pattern}", "lake", lambda path: f"{root}/{path}", access, listing)


@dataclass
class Bucket:
    """A bucket with tables that are copies of one."""

    server: S3Server
    name: str
    pattern: Path
    _seen: int = field(default=0)

    def add(self, *paths: str) -> None:
        """Make tables."""
        for path in paths:
            for file in filter(Path.is_file, self.pattern.rglob("*")):
                self.put(f"{path}/{file.relative_to(self.pattern)}", file.read_bytes())

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        address = f"{self.server.endpoint}/{self.name}/{key}"
        # The server would wait for more of a form, which is what urllib sends by default.
        kind = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(address, content, kind, method="PUT")  # noqa: S310 a server of this machine
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310

    def place(self, pattern: str) -> Place:
        """The folders in it."""
        return folders(f"s3://{self.name}", pattern, lambda uri: PlainAccess(uri, self.server.options))

    def requests(self) -> int:
        """How many reads there were since the last call."""
        before, self._seen = (
            self._seen,
            len([path for _, path in self.server.reads() if path.startswith(f"/{self.name}")]),
        )
        return self._seen - before


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


def _bucket(server: S3Server, name: str, tmp_path: Path) -> Bucket:
    lake = DiskLake(tmp_path)
    lake.add("one")
    server.put(name)
    return Bucket(server, name, lake.lake / "one")


def test_a_scan_costs_a_listing_for_each_folder_on_the_way(server: S3Server, tmp_path: Path) -> None:
    bucket = _bucket(server, "counted", tmp_path)
    bucket.add("sales/orders", "sales/lines", "stock/items")
    server.put("counted", "stock/plain/x.parquet")
    place = bucket.place("*/*")
    bucket.requests()
    first = scan(place, None, 0)
    # Three listings; four requests open a table of one commit, and two detect that a folder is none.
    assert bucket.requests() == 3 + 3 * 4 + 2
    assert _kinds(first) == {
        "sales/lines": FolderKind.TABLE,
        "sales/orders": FolderKind.TABLE,
        "stock/items": FolderKind.TABLE,
        "stock/plain": FolderKind.NOT_A_TABLE,
    }
    (facts,) = (folder.facts for folder in first.folders if folder.path == "sales/orders")
    assert (facts.feed, facts.row_tracking, facts.columns) == (True, False, ("id", "of"))
    bucket.requests()
    second = scan(place, first, 60)
    assert bucket.requests() == 3 + 2, "the folder that is none may have become a table"
    third = scan(place, second, 61)
    assert bucket.requests() == 3
    assert _kinds(third) == _kinds(first)


def test_what_is_not_wanted_is_not_read(server: S3Server, tmp_path: Path) -> None:
    bucket = _bucket(server, "wanted", tmp_path)
    bucket.add("orders", "scratch")
    bucket.requests()
    found = scan(bucket.place("*"), None, 0, lambda path: path != "scratch")
    assert bucket.requests() == 1 + 4
    assert _kinds(found)["scratch"] is FolderKind.UNREAD


def test_folders_of_a_store_are_those_of_a_disk(server: S3Server, tmp_path: Path) -> None:
    paths = ("a/t1", "a/t2", "b/t1", "b/_tmp", "c d/t=1", "größe/x", "top/_delta_log/0", "top/inner")
    server.put("same", *(f"{path}/x" for path in paths), "loose")
    for path in paths:
        (tmp_path / path).mkdir(parents=True)
    store, disk = PlainAccess("s3://same", server.options), PlainAccess(str(tmp_path))
    for pattern in ("*", "*/*", "*/t1", "[ab]/t?", "*/_*", "nothing/*", "a/*/*"):
        assert match_folders(store, pattern) == match_folders(disk, pattern), pattern
    assert match_folders(disk, "*/*").paths == ("a/t1", "a/t2", "b/t1", "c d/t=1", "größe/x")
    assert match_folders(disk, "*/_*").paths == ("b/_tmp",)


def test_a_wrong_bucket_is_an_error(server: S3Server) -> None:
    with pytest.raises(SettingError, match="nobucket"):
        Bucket(server, "nobucket", Path()).place("*").listing()


def test_a_folder_that_can_not_be_listed_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("closed/t", "open/t"):
        (tmp_path / path).mkdir(parents=True)
    root = PlainAccess(str(tmp_path))
    (tmp_path / "closed").rename(tmp_path / "moved")
    (tmp_path / "closed").symlink_to(tmp_path / "moved")
    real = Path.__truediv__

    def moved(path: Path, name: str) -> Path:
        return real(path, "loose") if name == "closed" else real(path, name)

    monkeypatch.setattr(Path, "__truediv__", moved)
    found = match_folders(root, "*/*")
    assert found.paths == ("moved/t", "open/t")
    assert [folder.path for folder in found.unlisted] == ["closed"]


def _kinds(finding: PlaceFinding) -> dict[str, FolderKind]:
    return {folder.path: folder.facts.kind for folder in finding.folders}


def test_five_hundred_folders_of_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = DiskLake(tmp_path)
    lake.add(*(f"s{number % 10}/t{number:03}" for number in range(500)))
    scanned, opened = list[str](), list[str]()
    scandir, facts = os.scandir, newest_metadata

    def scanning(path: Path) -> object:
        scanned.append(str(path))
        return scandir(path)

    def opening(access: Access) -> Metadata:
        opened.append(access.uri)
        return facts(access)

    monkeypatch.setattr(os, "scandir", scanning)
    monkeypatch.setattr(places, "newest_metadata", opening)
    place = folders(str(lake.lake), "*/*", PlainAccess)
    first = scan(place, None, 0)
    assert (len(scanned), len(opened)) == (11, 500)
    assert sum(folder.facts.is_table for folder in first.folders) == 500
    scan(place, first, 60)
    assert (len(scanned), len(opened)) == (22, 500)


def test_a_store_that_never_responds_fails_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_SHORT", places._SHORT | {"timeout": "1s", "retry_timeout": "1s"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        options = {"aws_endpoint_url": endpoint, "aws_allow_http": "true", "aws_region": "us-east-1"}
        keys = {"aws_access_key_id": "someone", "aws_secret_access_key": "secret"}
        access = partial(PlainAccess, options=options | keys)
        place = folders("s3://silent", "*", access)
        began = time.monotonic()
        with pytest.raises(RetryError):
            place.listing()
        assert place.read(["orders"]) == {}, "nothing is known of it, and the next scan reads it"
        assert time.monotonic() - began < 30
