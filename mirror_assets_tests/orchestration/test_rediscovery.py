"""Tables that appear and go while Dagster runs: what the sensor does about them, without a person."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import load_config
from mirror_assets.landing.names import heartbeat_path
from mirror_assets.orchestration import sensors
from mirror_assets.orchestration.jobs import TABLES_OP
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.asset_kinds import kind_of
from mirror_assets_tests.orchestration.test_sensors import Deployment
from mirror_assets_tests.worlds.disk_lake import DiskLake

_RULE = '{from: {store: lake, path: "*"}, schema: shop, keys: {default: [id]}}'


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskLake:
    """A lake that is scanned at each tick."""
    monkeypatch.setattr(sensors, "_SCAN_SECONDS", 0.0)
    made = DiskLake(tmp_path)
    made.lake.mkdir()
    return made


def _deployed(lake: DiskLake, instance: dg.DagsterInstance, mode: str) -> Deployment:
    """Definitions as a code server loads them."""
    lake.configure(_RULE, f"automation: {{mode: {mode}}}\n")
    config_file = lake.root / "mirror.yaml"
    config_file.write_text(config_file.read_text().replace("./landing", "./zone"))
    return Deployment(lake.root, instance, load_config(config_file))


@dataclass
class Reloads:
    """What the server was asked; `error` is its answer, after so many `seconds`."""

    asked: int = 0
    error: Exception | None = None
    seconds: float = 0.0

    def reload(self) -> None:
        """Answer as said."""
        self.asked += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error


@pytest.fixture
def reloads(monkeypatch: pytest.MonkeyPatch) -> Reloads:
    found = Reloads()
    monkeypatch.setattr(sensors, "reload_definitions", lambda *_: found.reload())
    return found


def _pending(requests: list[dg.RunRequest] | str) -> list[str]:
    assert isinstance(requests, list), requests
    return [name for one in requests for name in one.run_config["ops"][TABLES_OP]["config"]["follow"]["pending"]]


@pytest.mark.parametrize("mode", ["batch", "resident"])
def test_definitions_load_before_there_is_any_table(
    lake: DiskLake, instance: dg.DagsterInstance, mode: str, reloads: Reloads
) -> None:
    deployed = _deployed(lake, instance, mode)
    assert deployed.tick() == "no table has been found yet"
    dg.Definitions.validate_loadable(deployed.definitions)
    assert reloads.asked == 0


@pytest.mark.parametrize("error", [None, RuntimeError("it does not answer")])
def test_where_definitions_stay_the_sensor_goes_on_with_what_it_has_found(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads, error: Exception | None
) -> None:
    reloads.error = error
    lake.add("orders")
    deployed = _deployed(lake, instance, "batch")
    assert _pending(deployed.tick()) == ["shop.orders"]
    lake.add("lines")
    assert _pending(deployed.tick()) == ["shop.orders"], "this tick has found it, and asked for a reload"
    assert _pending(deployed.tick()) == ["shop.lines", "shop.orders"]
    assert deployed.tick() != []
    assert reloads.asked == 1


def test_the_resident_run_ends_when_other_tables_are_found(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads
) -> None:
    lake.add("orders")
    deployed = _deployed(lake, instance, "resident")
    first = deployed.requested()
    deployed.runs(first)
    assert "run 0815 mirrors 1 tables" in deployed.tick()
    lake.add("lines")
    deployed.tick()
    assert reloads.asked == 1
    assert "it ends, because settings, code or tables have changed" in deployed.tick()
    deployed.store.delete(heartbeat_path("0815"))
    second = deployed.requested()
    deployed.runs(second)
    assert deployed.tick() == "run 0815 mirrors 2 tables"
    codes = {one.run_config["ops"][TABLES_OP]["config"]["follow"]["code"] for one in (first, second)}
    assert len(codes) == 2


def test_while_definitions_load_the_sensor_goes_on_as_before(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "_TICK_WAITS_SECONDS", 0.1)
    reloads.seconds = 2.0
    lake.add("orders")
    deployed = _deployed(lake, instance, "batch")
    lake.add("lines")
    began = time.monotonic()
    assert _pending(deployed.tick()) == ["shop.orders"]
    assert _pending(deployed.tick()) == ["shop.orders"]
    assert time.monotonic() - began < 2.0
    time.sleep(2.5)
    assert _pending(deployed.tick()) == ["shop.lines", "shop.orders"]


def test_definitions_are_not_reloaded_from_a_file_with_mistakes(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads, caplog: pytest.LogCaptureFixture
) -> None:
    lake.add("orders")
    deployed = _deployed(lake, instance, "batch")
    (lake.root / "mirror.yaml").write_text("nonsense")
    lake.add("lines")
    deployed.tick()
    assert _pending(deployed.tick()) == ["shop.lines", "shop.orders"]
    assert reloads.asked == 0
    assert "the definitions could not be reloaded; new tables are mirrored nevertheless" in caplog.text


def test_what_was_unreachable_at_the_load_is_added_when_it_responds(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads
) -> None:
    lake.add("orders")
    lake.lake.rename(lake.root / "unmounted")
    zone = lake.root / "zone"
    zone.write_text("a file, which can't be a landing zone")
    deployed = _deployed(lake, instance, "batch")
    assert deployed.config.names == ()
    (lake.root / "unmounted").rename(lake.lake)
    zone.unlink()
    deployed.tick()
    assert reloads.asked == 1
    assert _pending(deployed.tick()) == ["shop.orders"]


def test_the_next_load_has_the_tables_and_not_those_that_are_gone(
    lake: DiskLake, instance: dg.DagsterInstance, reloads: Reloads
) -> None:
    lake.add("orders")
    deployed = _deployed(lake, instance, "batch")
    lake.add("lines")
    (lake.lake / "orders").rename(lake.root / "away")
    for _ in range(4):
        deployed.tick()
    assert reloads.asked == 2, "one for the new table, then one for the other that is gone"
    again = Deployment(lake.root, instance, load_config(lake.root / "mirror.yaml"))
    keys = again.definitions.resolve_asset_graph().get_all_asset_keys()
    zones = {key for key in keys - {dg.AssetKey("mirror_status")} if kind_of(key) == AssetKind.LANDING}
    assert zones == {asset_key(AssetKind.LANDING, name) for name in again.config.names}
    assert [str(name) for name in again.config.names] == ["shop.lines"]


def test_without_rules_discovery_does_not_run(
    lake: DiskLake, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.add("orders")
    tables = "tables: {orders: {source: ./lake/orders, keys: [id]}}"
    (lake.root / "mirror.yaml").write_text(f"landing_zone: {{path: ./zone}}\nautomation: {{mode: batch}}\n{tables}\n")
    deployed = Deployment(lake.root, instance, load_config(lake.root / "mirror.yaml"))
    monkeypatch.setattr(sensors, "with_found_tables", None)
    assert _pending(deployed.tick()) == ["orders"]
