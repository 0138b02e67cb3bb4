"""The sensor that runs the local stand-in: there is none where Fabric replicates."""

from __future__ import annotations

import pytest

from mirror_assets.config.load import load_config
from mirror_assets.definitions import build_definitions
from mirror_assets.orchestration.replicator_sensor import SENSOR
from mirror_assets_tests.lab import Lab


def test_the_stand_in_has_a_sensor(lab: Lab) -> None:
    assert SENSOR in {sensor.name for sensor in build_definitions(lab.config).sensors or ()}


@pytest.mark.usefixtures("database")
def test_fabric_needs_none() -> None:
    assert SENSOR not in {sensor.name for sensor in build_definitions(load_config()).sensors or ()}
