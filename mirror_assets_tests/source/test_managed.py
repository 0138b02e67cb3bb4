"""The log of a table whose newest commits its catalog has: what of catalog and log is read, and what isn't."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from azure.core.pipeline.policies import RetryPolicy
from deltalake import DeltaTable, write_deltalake

from mirror_assets.errors import MirrorError, RetryError, SettingError
from mirror_assets.lakes.catalogs import CatalogConfig, CatalogType, KnownLocations, locate, unity_client
from mirror_assets.lakes.errors import (
    CATALOG_DENIED,
    CATALOG_INCOMPATIBLE,
    CATALOG_MANAGED,
    CATALOG_REFUSED,
    CATALOG_TABLE_UNKNOWN,
    CATALOG_UNAVAILABLE,
    COMMITS_UNFIT,
    SOURCE_UNAVAILABLE,
)
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import Answer, LoopbackUnity, delta_refusal

ADDRESS = "catalog://main/sales.orders"


@pytest.fixture
def managed(unity: LoopbackUnity, tmp_path: Path) -> ManagedTable:
    """Six commits, of which the first three are published."""
    made = ManagedTable(unity, "main.sales.orders", tmp_path / "writer", tmp_path / "orders")
    append(made, 6)
    made.ratify()
    made.publish(2)
    return made


def append(table: ManagedTable, commits: int = 1) -> None:
    for number in range(commits):
        write_deltalake(str(table.writer), pa.table({"id": [number]}), mode="append")


def log_of(unity: LoopbackUnity) -> DeltaLog:
    catalog = CatalogConfig(type=CatalogType.UNITY, url=unity.url, token_variable="UC_TOKEN")  # noqa: S106
    return DeltaLog(ADDRESS, locate=partial(locate, ADDRESS, {"main": catalog}, ()))


def ids_at(log: DeltaLog, version: int) -> int:
    return sum(file.rows or 0 for file in log.reopened().snapshot(version).files)


def test_published_and_staged_commits_are_one_log(unity: LoopbackUnity, managed: ManagedTable) -> None:
    log = log_of(unity)
    state = log.state()
    assert (state.version, state.rows, log.earliest(), log.earliest_state()) == (5, 6, 0, 0)
    assert [commit.version for commit in log.commits(1, 5)] == [1, 2, 3, 4, 5]
    assert [ids_at(log, version) for version in range(6)] == [1, 2, 3, 4, 5, 6]
    assert [file.version for file in scan_changes(log, CommitRange(2, 5)).files] == [2, 3, 4, 5]
    assert log.reopened().versions() == (0, 1, 2, 3, 4, 5)
    assert DeltaTable(str(managed.writer)).version() == 5


def test_the_file_that_the_catalog_names_counts_beside_a_published_one(
    unity: LoopbackUnity, managed: ManagedTable
) -> None:
    managed.publish(5, forget=False)
    for version in (3, 5):
        commit_file(managed.path, version).write_bytes(commit_file(managed.path, 1).read_bytes())
    log = log_of(unity)
    assert (log.state().version, log.state().rows) == (5, 6)
    assert log.live_paths(5).hashes.size == 6
    assert len({commit.digest for commit in log.commits(0, 5)}) == 6


def test_files_beyond_the_newest_version_and_files_that_the_catalog_does_not_name_are_ignored(
    unity: LoopbackUnity, managed: ManagedTable
) -> None:
    append(managed, 2)
    before = managed.table
    managed.ratify()
    managed.publish(7)
    (managed.path / "_delta_log" / f"{7:020d}.checkpoint.parquet").write_bytes(b"of a later version")
    other = managed.staged(before.ratified[0]).with_name(f"{4:020d}.another.json")
    other.write_text('{"add": "not part of the table"}')
    unity.tables[before.full_name] = before
    log = log_of(unity)
    state = log.state()
    assert (state.version, state.rows) == (5, 6)
    mark = log.tip_mark(5)
    assert mark is not None
    assert log.is_still_tip(mark)
    assert not log.has_next(mark)
    assert log.reopened().newest() == 5


def test_a_version_that_is_published_between_the_response_and_the_listing(
    unity: LoopbackUnity, managed: ManagedTable
) -> None:
    log = log_of(unity)
    assert log.uri == str(managed.path)
    append(managed)
    managed.ratify()
    managed.publish(6, clean=True)
    assert [commit.version for commit in log.commits(0, 5)] == [0, 1, 2, 3, 4, 5]
    assert log.snapshot(4).version == log.reopened().snapshot(4).version == 4
    with raises_row(SOURCE_UNAVAILABLE, match="version 5 is the newest, and version 6 is needed"):
        log.commits(6, 6)
    assert log.state().version == 6


def test_a_quiet_table_costs_one_request_to_its_catalog(unity: LoopbackUnity, managed: ManagedTable) -> None:
    log = log_of(unity)
    mark = log.tip_mark(log.state().version)
    assert mark is not None
    unity.log.clear()
    assert log.is_still_tip(mark)
    assert not log.has_next(mark)
    assert [asked.path for asked in unity.log] == ["/delta/v1/catalogs/main/schemas/sales/tables/orders"] * 2
    append(managed)
    managed.ratify()
    assert log.has_next(mark)
    assert not log.is_still_tip(mark)


def test_times_are_in_commit_timestamps(unity: LoopbackUnity, managed: ManagedTable) -> None:
    log = log_of(unity)
    state = log.state()
    times = log.times(state)
    expected = [managed.time_ms(version) for version in range(6)]
    assert [times.at(version) for version in range(6)] == expected
    assert [log.time_ms(version) for version in range(6)] == expected
    assert [commit.timestamp_ms for commit in log.commits(0, 5)] == expected
    assert state.timestamp_ms == expected[-1]


def test_a_table_that_becomes_catalog_managed(unity: LoopbackUnity, tmp_path: Path) -> None:
    made = ManagedTable(unity, "main.sales.orders", tmp_path / "writer", tmp_path / "orders", since=3)
    append(made, 3)
    made.ratify()
    log = log_of(unity)
    assert (log.state().version, log.is_managed) == (2, False)
    append(made, 3)
    made.ratify()
    assert (log.state().version, log.is_managed) == (5, True)
    assert [commit.version for commit in log.commits(1, 5)] == [1, 2, 3, 4, 5]
    assert [log.times(log.state()).at(version) for version in (3, 5)] == [made.time_ms(3), made.time_ms(5)]
    made.publish(5)
    made.table.properties.clear()
    with raises_row(CATALOG_MANAGED):
        log.state()


def test_another_table_under_the_name(unity: LoopbackUnity, managed: ManagedTable, tmp_path: Path) -> None:
    log = log_of(unity)
    mark = log.tip_mark(log.state().version)
    assert mark is not None
    other = ManagedTable(unity, "main.sales.orders", tmp_path / "writer2", tmp_path / "orders2")
    append(other, 2)
    other.ratify()
    assert [commit.version for commit in log.commits(4, 5)] == [4, 5], "what is planned is read to its end"
    assert not log.is_still_tip(mark)
    assert (log.state().version, log.uri) == (1, str(other.path))
    assert managed.path.is_dir()


def test_a_table_of_an_older_server_is_read_by_pages_of_commits(
    unity: LoopbackUnity, managed: ManagedTable, tmp_path: Path
) -> None:
    unity.delta_versions = ()
    old = ManagedTable(unity, "main.sales.orders", managed.writer, tmp_path / "old", feature="catalogOwned-preview")
    append(old)
    old.ratify()
    old.publish(1)
    log = log_of(unity)
    assert (log.state().version, log.state().rows) == (6, 7)
    assert [asked.path for asked in unity.log].count("/delta/preview/commits") == 6


@pytest.mark.usefixtures("managed")
def test_no_common_version(unity: LoopbackUnity) -> None:
    unity.delta_versions = ("2.0",)
    with raises_row(CATALOG_INCOMPATIBLE, match="No common protocol version") as refused:
        log_of(unity).state()
    assert "update mirror-assets" in refused.value.next_step
    unity.delta_versions = ("1.0",)
    assert log_of(unity).state().version == 5


def without(*versions: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def altered(document: dict[str, Any]) -> dict[str, Any]:
        commits = [commit for commit in document["commits"] if commit["version"] not in versions]
        return {**document, "commits": commits}

    return altered


def with_latest(version: int | None) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {**document, "latest-table-version": version}


UNFIT = {
    "a commit in the middle": (without(4), COMMITS_UNFIT, "without commit 4 of those up to version 5"),
    "the newest commit": (without(5), COMMITS_UNFIT, "without commit 5"),
    "the first that isn't published": (without(3), SOURCE_UNAVAILABLE, "commit 3 is published, and its log lacks it"),
    "all commits": (without(3, 4, 5), SOURCE_UNAVAILABLE, "commit 5 is published, and its log lacks it"),
    "a newest version without its commit": (with_latest(6), COMMITS_UNFIT, "without commit 6"),
    "no newest version": (with_latest(None), COMMITS_UNFIT, "without its newest version"),
    "a newest version before its commits": (with_latest(4), COMMITS_UNFIT, "with commit 5, and version 4"),
}


@pytest.mark.usefixtures("managed")
@pytest.mark.parametrize("case", UNFIT)
def test_a_list_of_commits_that_lacks_some_is_not_read(unity: LoopbackUnity, case: str) -> None:
    unity.alter, row, why = UNFIT[case]
    with raises_row(row, match=why) as refused:
        log_of(unity).state()
    assert isinstance(refused.value, RetryError)
    unity.alter = lambda document: document
    assert log_of(unity).state().version == 5


def test_an_older_response_after_a_newer_one(
    unity: LoopbackUnity, managed: ManagedTable, known_locations: KnownLocations
) -> None:
    log = log_of(unity)
    older = json.loads(json.dumps(managed.table.loaded))
    append(managed)
    managed.ratify()
    assert log.state().version == 6
    unity.alter = lambda _: older
    for ask in (log.state, log_of(unity).state):
        with raises_row(COMMITS_UNFIT, match="up to version 5, and has listed version 6 before"):
            ask()
    assert log.commits(6, 6)[0].version == 6, "what is planned is still read"
    known_locations.newest.clear()  # as in another process
    log = log_of(unity)
    state = log.state()
    with raises_row(SOURCE_UNAVAILABLE, match="version 5 is the newest, and version 6 is needed"):
        log.require_landed(state, 6, state.table_id)
    log.require_landed(state, 6, "another table")


def test_one_older_response_of_several_replicas_is_asked_again(unity: LoopbackUnity, managed: ManagedTable) -> None:
    log, older = log_of(unity), [managed.table.loaded]
    append(managed)
    managed.ratify()
    assert log.state().version == 6
    unity.alter = lambda document: older.pop() if older else document
    assert log.state().version == 6


def test_a_staged_file_that_is_lost(unity: LoopbackUnity, managed: ManagedTable) -> None:
    managed.staged(managed.table.ratified[1]).unlink()
    with raises_row(SOURCE_UNAVAILABLE, match="for commit 4, and the file is missing"):
        log_of(unity).state()


ANSWERS: dict[str, tuple[Answer | None, type[MirrorError], Any]] = {
    "401": (Answer.refusal(401, "UNAUTHENTICATED", "expired"), SettingError, CATALOG_DENIED),
    "403": (delta_refusal(403, "PermissionDeniedException", "no SELECT"), SettingError, CATALOG_DENIED),
    "404": (delta_refusal(404, "NoSuchTableException", "gone"), SettingError, CATALOG_TABLE_UNKNOWN),
    "429": (delta_refusal(429, "TooManyRequestsException", "later"), RetryError, CATALOG_UNAVAILABLE),
    "500": (delta_refusal(500, "InternalServerErrorException", "oops"), RetryError, CATALOG_UNAVAILABLE),
    "cut off": (None, RetryError, CATALOG_UNAVAILABLE),
    "another interface": (Answer(200, {"commits": []}), SettingError, CATALOG_REFUSED),
}


@pytest.mark.usefixtures("managed")
@pytest.mark.parametrize("case", ANSWERS)
def test_a_refusal_of_the_catalog_stops_the_table_with_its_reason(
    unity: LoopbackUnity, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(RetryPolicy, "get_backoff_time", lambda *_: 0)
    answer, family, row = ANSWERS[case]
    log = log_of(unity)
    assert log.state().version == 5
    unity.faults = [answer] * 8
    with raises_row(row, match="sales.orders: the catalog main") as refused:
        log.state()
    assert isinstance(refused.value, family)
    assert refused.value.next_step
    unity.faults = []
    assert log.state().version == 5


@pytest.mark.usefixtures("managed")
def test_a_catalog_that_is_slow(unity: LoopbackUnity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.lakes.unity._SECONDS", 1.0)
    unity_client.cache_clear()
    assert log_of(unity).state().version == 5
    unity.slow = 2.0
    with raises_row(CATALOG_UNAVAILABLE, match="sales.orders: the catalog main does not answer"):
        log_of(unity).state()
    unity_client.cache_clear()


def test_a_table_that_is_named_by_its_path_is_refused(unity: LoopbackUnity, managed: ManagedTable) -> None:
    managed.publish(5)
    with raises_row(CATALOG_MANAGED) as refused:
        DeltaLog(str(managed.path)).state()
    assert "source: {catalog: NAME, table: SCHEMA.TABLE}" in refused.value.next_step
    assert unity.log == []


def test_a_response_has_no_file_name_that_leads_elsewhere(unity: LoopbackUnity, managed: ManagedTable) -> None:
    bad = replace(managed.table.ratified[-1], file_name=f"../{5:020d}.json")
    unity.tables["main.sales.orders"].ratified = (*managed.table.ratified[:-1], bad)
    with raises_row(CATALOG_REFUSED, match="commits.0.file-name"):
        log_of(unity).state()
