"""When a sensor asks again, and for how much."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.landing.drop import begin_drop
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets.orchestration.sensors import default_status
from mirror_assets.storage import LocalStore


@pytest.mark.parametrize(("value", "on"), [(None, False), ("off", False), ("on", True), ("ON", True)])
def test_sensors_are_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch, value: str | None, on: bool) -> None:
    monkeypatch.delenv(SENSORS_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(SENSORS_VARIABLE, value)
    assert (default_status().value == "RUNNING") is on


def test_a_table_that_is_being_dropped_is_left_alone(tmp_path: Path) -> None:
    """Its record is not that of a rebuild, which would have to be gone on with."""
    text = "landing_zone: {path: ./zone}\ntables: {shop.orders: {source: ./lake/orders, keys: [id]}}"
    config = parse_config(text.encode(), tmp_path / "mirror.yaml", {})
    drive(begin_drop(TableName("shop", "orders")), LocalStore(tmp_path / "zone"))
    definitions = build_definitions(config)
    with dg.instance_for_test() as instance:
        context = dg.build_sensor_context(instance=instance, definitions=definitions, resources=resources(config))
        result = definitions.resolve_sensor_def("slices_shop__orders")(context)
    assert isinstance(result, dg.SkipReason)
    assert "mirror-assets drop shop.orders" in (result.skip_message or "")
