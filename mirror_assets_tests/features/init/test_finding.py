"""What a listing changes in what is known, and which folders are read again."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from pydantic import ValidationError

from mirror_assets.errors import RetryError
from mirror_assets.features.init import finding as places
from mirror_assets.features.init.finding import (
    FolderFacts,
    FolderKind,
    FoundFolder,
    Place,
    PlaceFinding,
    after_listing,
    brief_access,
    scan,
)
from mirror_assets.features.init.listing import Listing, list_folders
from mirror_assets.lakes.access import Access, Located, PlainAccess
from mirror_assets_tests.source.s3_server import s3_server
from mirror_assets_tests.worlds.disk_lake import FEED

TABLE, NONE = FolderFacts(kind=FolderKind.TABLE, table_id="t"), FolderFacts(kind=FolderKind.NOT_A_TABLE)
_PLACE = "/lake *"


def _after(paths: str, before: PlaceFinding | None, now: float, unlisted: str = "", parents: str = "") -> PlaceFinding:
    """The finding after a listing of the root, of the parents of these paths, and of other `parents`."""
    found = tuple(paths.split())
    listed = frozenset(["", *parents.split(), *(path.rpartition("/")[0] for path in found)])
    return after_listing(_PLACE, Listing(found, listed, dict.fromkeys(unlisted.split(), "denied")), before, now)


def _paths(finding: PlaceFinding) -> list[str]:
    return [folder.path for folder in finding.folders]


def test_what_is_known_stays_known() -> None:
    first = _after("a b", None, 10).with_facts({"a": TABLE, "b": NONE}, 11)
    second = _after("b c a", first, 70)
    assert _paths(second) == ["a", "b", "c"]
    a, b, c = second.folders
    assert (a.facts, a.first_seen, a.read_at) == (TABLE, 10, 11)
    assert (b.facts, c.facts.kind, c.first_seen) == (NONE, FolderKind.UNREAD, 70)


def test_a_table_is_deleted_only_by_listings_of_its_parent() -> None:
    """A folder of the share that is not mounted, or a schema that a revoked grant hides, is missing itself."""
    tables = dict.fromkeys(("a/x", "b/u", "b/v", "b/w"), TABLE)
    found = _after("a/x b/u b/v b/w", None, 0).with_facts(tables, 0)
    for now in range(60, 300, 60):
        found = _after("b/u b/v b/w", found, now)
        assert _paths(found) == ["a/x", "b/u", "b/v", "b/w"]
        assert bool(found.trouble) is (now > 60), "one listing without the parent says nothing"
    assert found.trouble.startswith("1 of 4 tables are no longer listed (a/x): they are mirrored as before. Next: ")
    once = _after("b/u b/v b/w", found, 300, parents="a")
    assert (_paths(once), once.trouble) == (["a/x", "b/u", "b/v", "b/w"], ""), "the first listing that proves anything"
    assert _paths(_after("b/u b/v b/w", once, 360, parents="a")) == ["b/u", "b/v", "b/w"]
    listing = Listing(("b/u", "b/v", "b/w"), frozenset(["b"]))
    assert _paths(after_listing(_PLACE, listing, found, 360, accepts_loss=True)) == ["b/u", "b/v", "b/w"]


def test_a_scan_without_a_change_does_not_differ_from_the_one_before() -> None:
    first = _after("a b", None, 10, unlisted="c").with_facts({"a": TABLE, "b": NONE}, 10)
    assert first.differs_from(None)
    assert not _after("a b", first, 70, unlisted="c").differs_from(first)
    assert _after("a", first, 70, unlisted="c").differs_from(first)
    assert _after("a b", first, 70).differs_from(first)
    lost = first
    for now in range(70, 310, 60):
        before, lost = lost, _after("", lost, now, unlisted="c")
    assert lost.trouble
    assert not lost.differs_from(before), "a loss that lasts is written once"
    failed = first.model_copy(update={"trouble": "request 17 timed out", "code": "source_unavailable"})
    assert failed.differs_from(first)
    assert not failed.model_copy(update={"trouble": "request 18 timed out"}).differs_from(failed)
    never = PlaceFinding(place=_PLACE, listed_at=0)
    assert PlaceFinding(place=_PLACE, listed_at=9).differs_from(never), "an empty place that was listed"


def test_the_loss_of_more_than_half_of_the_tables_changes_nothing_until_a_person_accepts_it() -> None:
    """An unmounted share, a renamed prefix and a revoked grant look like a place that is empty."""
    found = _after("a b c", None, 0).with_facts({"a": TABLE, "b": TABLE, "c": TABLE}, 0)
    for now in range(60, 600, 60):
        found = _after("c" if now < 300 else "", found, now)
        assert _paths(found) == ["a", "b", "c"]
        assert bool(found.trouble) is (now > 60), "one listing without a table says nothing"
    assert found.trouble.startswith("3 of 3 tables are no longer listed (a, b, c): they are mirrored as before. Next: ")
    assert _after("a b c", found, 600).trouble == ""
    accepted = after_listing(_PLACE, Listing(("c",), frozenset([""])), found, 600, accepts_loss=True)
    assert (_paths(accepted), accepted.trouble) == (["c"], "")


def test_below_a_folder_that_can_not_be_listed_all_stays_as_it_was() -> None:
    first = _after("a/x b/y", None, 0).with_facts({"a/x": TABLE, "b/y": TABLE}, 0)
    for now in range(60, 300, 60):
        first = _after("b/y", first, now, unlisted="a")
    assert _paths(first) == ["a", "a/x", "b/y"]
    assert first.folders[0].facts == FolderFacts(kind=FolderKind.UNLISTED, why="denied")
    assert first.to_read(300, {"a", "a/x"}.__contains__) == ()
    assert _paths(_after("a/x", first, 360)) == ["a/x", "b/y"]


def test_tables_are_read_once_and_other_folders_less_and_less_often() -> None:
    finding = _after("a b c", None, 0)
    assert finding.to_read(0, {"a", "b"}.__contains__) == ("a", "b"), "c is not wanted"
    finding = finding.with_facts({"a": TABLE, "b": NONE}, 0)
    read = []
    for now in range(60, 20_000, 60):
        due = finding.to_read(now, {"a", "b"}.__contains__)
        read += [now] if due else []
        finding = finding.with_facts(dict.fromkeys(due, NONE), now)
    assert read[:6] == [60, 120, 240, 480, 960, 1920]
    assert read[7] - read[6] == read[8] - read[7] == 3600
    assert finding.to_read(read[-1] + 1, {"a", "b"}.__contains__, all_others=True) == ("b",)


@pytest.mark.parametrize("path", ["", "/a", "../a", "a//b", "a/./b", "a/"])
def test_a_path_never_leads_out_of_the_root(path: str) -> None:
    with pytest.raises(ValidationError):
        FoundFolder(path=path, first_seen=0)


_NAMES = st.sampled_from("abcd")


@given(st.lists(st.tuples(st.frozensets(_NAMES), st.frozensets(_NAMES)), max_size=12))
def test_a_listed_folder_is_known_and_an_unlisted_table_for_one_more_unless_most_are_unlisted(
    looks: list[tuple[frozenset[str], frozenset[str]]],
) -> None:
    """Each look is what the listing has, and which of it are tables."""
    finding: PlaceFinding | None = None
    missed: dict[str, int] = {}
    tables: set[str] = set()
    for number, (listing, are_tables) in enumerate(looks):
        lost = tables - listing
        is_suspicious = len(lost) * 2 > len(tables)
        finding = after_listing(_PLACE, Listing(tuple(listing), frozenset([""])), finding, number)
        tables &= set(_paths(finding))
        due = finding.to_read(number, listing.__contains__, all_others=True)
        tables |= {path for path in due if path in are_tables}
        finding = finding.with_facts({path: TABLE if path in are_tables else NONE for path in due}, number)
        missed = {path: 0 if is_suspicious else missed.get(path, 0) + 1 for path in lost}
        kept = {path for path in lost if missed[path] <= 1}
        assert set(_paths(finding)) == listing | kept
        assert {folder.path for folder in finding.folders if folder.facts.is_table} == tables


def folders(root: str, pattern: str, access: Callable[[str], Access]) -> Place:
    """The folders of a root as a place."""
    return Place(
        f"{root} {pattern}",
        "lake",
        lambda path: f"{root}/{path}",
        lambda uri: Located(uri, access(uri)),
        lambda: list_folders(brief_access(access(root)), pattern),
    )


def test_a_scan_costs_a_listing_for_each_folder_on_the_way(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        server.put("lake", "stock/plain/x.parquet", "stock/scratch/x.parquet")
        for path in ("sales/orders", "sales/lines", "stock/items"):
            written = {**server.options, "aws_conditional_put": "etag"}
            rows = pa.table({"id": [1], "of": ["a"]})
            write_deltalake(f"s3://lake/{path}", rows, configuration=FEED, storage_options=written)
        place = folders("s3://lake", "*/*", lambda uri: PlainAccess(uri, server.options))

        def scanned(before: PlaceFinding | None, now: float) -> tuple[PlaceFinding, int]:
            """A scan, and how many requests it sent."""
            earlier = len(server.reads())
            found = scan(place, before, now, lambda path: path != "stock/scratch")
            return found, len(server.reads()) - earlier

        first, requests = scanned(None, 0)
        # Three listings; four requests open a table of one commit, and two detect that a folder is none.
        assert requests == 3 + 3 * 4 + 2
        kinds = {folder.path: folder.facts.kind for folder in first.folders}
        assert kinds == {
            "sales/lines": FolderKind.TABLE,
            "sales/orders": FolderKind.TABLE,
            "stock/items": FolderKind.TABLE,
            "stock/plain": FolderKind.NOT_A_TABLE,
            "stock/scratch": FolderKind.UNREAD,
        }
        (facts,) = (folder.facts for folder in first.folders if folder.path == "sales/orders")
        assert (facts.feed, facts.row_tracking, facts.columns) == (True, False, ("id", "of"))
        second, requests = scanned(first, 60)
        assert requests == 3 + 2, "the folder that is none may have become a table"
        third, requests = scanned(second, 61)
        assert requests == 3
        assert {folder.path: folder.facts.kind for folder in third.folders} == kinds


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
