"""Alerts of places where tables are discovered, and of tables that are lost with them or refused in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.landing.metadata import metadata_bytes
from mirror_assets.landing.names import TableName
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.features.alerts.alerting import Deployment, kinds
from mirror_assets_tests.landing.staging import cover
from mirror_assets_tests.pipeline.paper import COLUMNS
from mirror_assets_tests.web import WebReceiver
from mirror_assets_tests.worlds.disk_lake import DiskLake

_RULES = """\
stores:
  lake: {root: ./lake}
discover:
  - {from: {store: lake, path: "*/*/"}, schema: sales, keys: {default: [id]}}
"""


@pytest.fixture
def discovered(tmp_path: Path, receiver: WebReceiver) -> Iterator[tuple[DiskLake, Deployment]]:
    """A lake of the tables t777 and t778, which have landed, and a deployment that discovers them."""
    assert receiver.url
    lake = DiskLake(tmp_path)
    lake.add("a/t777", "a/t778")
    with dg.instance_for_test() as instance:
        deployment = Deployment(tmp_path, instance, tables=0, settings=_RULES)
        for table in ("t777", "t778"):
            name, state = TableName("sales", table), DeltaLog(str(lake.lake / "a" / table)).state()
            deployment.store.create(name.metadata, metadata_bytes(("id",)))
            cover(deployment.store, name, state.version, state.table_id, state.schema_string, COLUMNS)
        yield lake, deployment


def _later(deployment: Deployment, times: int) -> None:
    """The sensor scans, and `checks` runs."""
    for _ in range(times):
        with_found_tables(deployment.config, When.NOW)
        deployment.checks(5)


def test_a_place_and_its_tables_that_vanish_are_one_message_until_they_are_back(
    discovered: tuple[DiskLake, Deployment], tmp_path: Path, receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    _later(deployment, 2)
    assert receiver.bodies == []
    assert len(deployment.config.names) == 2
    lake.lake.rename(tmp_path / "unmounted")
    (lake.lake / "a").mkdir(parents=True)
    _later(deployment, 4)
    assert kinds(receiver) == ["failure"]
    assert "is not listed as before" in receiver.titles()[0]
    assert len(deployment.config.names) == 2, "they are mirrored as before"
    (lake.lake / "a").rmdir()
    lake.lake.rmdir()
    (tmp_path / "unmounted").rename(lake.lake)
    _later(deployment, 3)
    assert kinds(receiver) == ["failure", "success"]


def test_a_newcomer_whose_name_is_taken_is_one_warning_and_the_mirrored_table_stays(
    discovered: tuple[DiskLake, Deployment], receiver: WebReceiver
) -> None:
    lake, deployment = discovered
    _later(deployment, 1)
    lake.add("Backup/t777")  # sorts first
    _later(deployment, 3)
    assert kinds(receiver) == ["warning"]
    assert receiver.titles()[0].endswith("Backup/t777: is not mirrored: the name sales.t777 is taken")
    assert deployment.config.table("sales.t777").source.endswith("/a/t777")
