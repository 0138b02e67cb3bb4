"""Alerts of places where tables are discovered, and of tables discovered in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import dagster as dg
import pytest

from mirror_assets.config import When, with_found_tables
from mirror_assets.errors import ErrorCode
from mirror_assets.source.access import Access
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.storage.lake.catalog_errors import catalog_denied
from mirror_assets_tests.alerts.web import WebReceiver
from mirror_assets_tests.discovery.lakes import DiskLake
from mirror_assets_tests.orchestration.alerting import Deployment, kinds


@pytest.fixture
def discovered(tmp_path: Path) -> Iterator[tuple[DiskLake, Deployment]]:
    """A lake of the tables t777 and t778, and a deployment that discovers them."""
    lake = DiskLake(tmp_path)
    lake.add("t777", "t778")
    rule = '{from: {store: lake, path: "*/"}, schema: sales, keys: {default: [id]}}'
    rules = f"stores:\n  lake: {{root: ./lake}}\ndiscover:\n  - {rule}\n"
    with dg.instance_for_test() as instance:
        yield lake, Deployment(tmp_path, instance, tables=1, rules=rules)


def test_a_place_whose_tables_vanish_is_reported_until_they_are_back(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver
) -> None:
    lake, deployment = discovered

    def look(times: int) -> None:
        for _ in range(times):
            with_found_tables(deployment.config, When.REFRESH)
            deployment.tick(60)

    look(1)
    lake.lake.rename(tmp_path / "unmounted")
    lake.lake.mkdir()
    look(5)
    assert kinds(receiver) == ["failure"]
    assert "2 of 2 tables are no longer listed (t777, t778)" in receiver.messages()[0]
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    look(5)
    assert kinds(receiver) == ["failure", "success"]


@pytest.mark.parametrize("fails_first", [True, False])
def test_a_place_and_its_tables_that_vanish_are_one_message(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver, *, fails_first: bool
) -> None:
    lake, deployment = discovered

    def scan() -> None:
        with_found_tables(deployment.config, When.REFRESH)

    def fail() -> None:
        for table in ("t777", "t778"):
            error = SourceNotDelta(str(lake.lake / table))
            deployment.fail(table, error.code, f"sales.{table}: {error}")

    scan()
    lake.lake.rename(tmp_path / "unmounted")
    lake.lake.mkdir()
    for is_failing in (fails_first, not fails_first):
        for step in (fail,) if is_failing else (scan, scan):
            step()
        deployment.later(3)
    assert kinds(receiver) == ["failure"]
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    scan()
    deployment.repair()
    deployment.later(5)
    assert kinds(receiver) == ["failure", "success"]


def test_a_discovered_table_that_is_lost_later_is_a_message_of_its_own(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    with_found_tables(deployment.config, When.REFRESH)
    for table in ("t777", "t778"):
        error = SourceNotDelta(str(lake.lake / table))
        deployment.fail(table, error.code, f"sales.{table}: {error}")
        deployment.later(3)
    assert kinds(receiver) == ["failure", "failure"]


def test_a_place_that_refuses_a_listing_and_its_tables_are_one_message(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, deployment = discovered
    with_found_tables(deployment.config, When.REFRESH)
    with monkeypatch.context() as patched:

        def refuse(root: Access, pattern: str) -> NoReturn:
            raise catalog_denied(f"{root.uri} {pattern}", "main", "no USE SCHEMA")

        patched.setattr("mirror_assets.discovery.places.list_folders", refuse)
        with_found_tables(deployment.config, When.REFRESH)
    deployment.later(3)
    for table in ("t777", "t778"):
        error = catalog_denied(f"sales.{table}", "main", "no SELECT")
        deployment.fail(table, ErrorCode.CATALOG_REFUSED, str(error))
    deployment.later(3)
    assert kinds(receiver) == ["failure"]
    with_found_tables(deployment.config, When.REFRESH)
    deployment.repair()
    deployment.later(5)
    assert kinds(receiver) == ["failure", "success"]


def test_a_table_that_was_discovered_after_the_start_is_watched(tmp_path: Path, receiver: WebReceiver) -> None:
    lake = DiskLake(tmp_path)
    lake.add("t776")
    rule = '{from: {store: lake, path: "*/"}, schema: sales, keys: {default: [id]}}'
    rules = f"stores:\n  lake: {{root: ./lake}}\ndiscover:\n  - {rule}\n"
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=1, rules=rules)
        deployment.settle()
        lake.add("t777")
        assert len(with_found_tables(deployment.config, When.NOW).names) == 3, "another process has found them"
        deployment.fail("t777", ErrorCode.LOG_GAP, "sales.t777: version 3 is missing. Next: rebuild it.")
        deployment.check("retention", passed=False, text="one hour is left", asset="t777")
        deployment.later(10)
        assert sorted(receiver.titles()) == [
            "sales.t777: can't be mirrored (log_gap)",
            "sales.t777: check retention fails",
        ]
