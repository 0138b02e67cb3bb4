"""When a sensor asks again, and for how much."""

from __future__ import annotations

import pytest

from mirror_assets.automation.sensors import SENSORS_VARIABLE, Failures, default_status


def test_the_pause_doubles_with_each_failure_up_to_an_hour() -> None:
    pauses = [Failures(count, ended=1000.0).pause_left(1000.0) for count in range(10)]
    assert pauses == [0, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert Failures(1, ended=1000.0).pause_left(1010.0) == 20
    assert Failures(1, ended=1000.0).pause_left(9999.0) == 0


def test_a_failure_of_long_ago_is_no_reason_to_overflow() -> None:
    assert Failures(5000, ended=0.0).pause_left(0.0) == 3600


@pytest.mark.parametrize(("value", "on"), [(None, False), ("off", False), ("on", True), ("ON", True)])
def test_sensors_are_off_unless_asked_for(monkeypatch: pytest.MonkeyPatch, value: str | None, on: bool) -> None:
    monkeypatch.delenv(SENSORS_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(SENSORS_VARIABLE, value)
    assert (default_status().value == "RUNNING") is on
