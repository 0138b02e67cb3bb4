"""The conditions of sensors and schedules: their newest tick failed, they are off, silent, or checks are overdue."""

from __future__ import annotations

import time
from collections.abc import Iterator
from unittest import mock

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_shared.error import SerializableErrorInfo

from mirror_assets.alerts.conditions import Condition
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.orchestration.alert_ticks import tick_conditions
from mirror_assets.orchestration.check_tables import CHECKS
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.orchestration.schedules import SENSORS_VARIABLE
from mirror_assets.orchestration.tick_errors import TickFailed, coded_tick

_NOW = time.time()


@dg.op
def _nothing() -> None: ...


@dg.job(name=CHECKS)
def _CHECKS_JOB() -> None:  # noqa: N802 a constant
    _nothing()


class Sensors:
    """Sensors in an instance, as the daemon keeps them."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance

    def add(
        self, name: str, status: InstigatorStatus, location: str = "here", *, is_schedule: bool = False
    ) -> InstigatorState:
        target = LoadableTargetOrigin(module_name="mirror_assets.definitions")
        place = RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, location), "__repository__")
        origin = RemoteInstigatorOrigin(place, name)
        state = InstigatorState(origin, InstigatorType.SENSOR, status, SensorInstigatorData(min_interval=15))
        if is_schedule:
            state = InstigatorState(origin, InstigatorType.SCHEDULE, status, ScheduleInstigatorData("* * * * *"))
        return self.instance.add_instigator_state(state)

    def checked(self, ago: float, location: str = "here") -> None:
        """Record that a run of the job `checks` has ended well."""
        tags = {".dagster/repository": f"__repository__@{location}"}
        run = self.instance.create_run_for_job(_CHECKS_JOB, tags=tags)
        with mock.patch("time.time", return_value=_NOW - ago):
            started = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, CHECKS)
            self.instance.report_dagster_event(started, run.run_id)
            ended = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, CHECKS)
            self.instance.report_dagster_event(ended, run.run_id)

    def tick(self, state: InstigatorState, status: TickStatus, ago: float = 1.0, error: str | None = None) -> None:
        told = SerializableErrorInfo(error, [], "Error") if error else None
        self.instance.create_tick(
            TickData(
                state.instigator_origin_id,
                state.instigator_name,
                InstigatorType.SENSOR,
                status,
                timestamp=_NOW - ago,
                selector_id=state.selector_id,
                error=told,
            )
        )

    def wrong(self, *, are_on: bool = True) -> list[tuple[str, str, str]]:
        return [(one.subject, one.what, one.text) for one in self.conditions(are_on=are_on)]

    def conditions(self, *, are_on: bool = True) -> tuple[Condition, ...]:
        names = frozenset({"mirror", "replicator", CHECKS})
        with mock.patch.dict("os.environ", {SENSORS_VARIABLE: "on" if are_on else "off"}):
            here = Location("__repository__", "here")
            return tuple(tick_conditions(self.instance, here, names, "alerts", CHECKS, 5, _NOW))


@pytest.fixture
def sensors() -> Iterator[Sensors]:
    with dg.instance_for_test() as instance:
        yield Sensors(instance)


def test_a_tick_that_fails_by_an_error_of_ours_has_its_code_and_cause(sensors: Sensors) -> None:
    error = SettingError("https://a.example/zone refused the token.", "renew it.", code=ErrorCode.TOKEN_REFUSED)
    with pytest.raises(TickFailed) as raised, coded_tick():
        raise error
    for name in ("mirror", "replicator"):
        state = sensors.add(name, InstigatorStatus.RUNNING)
        sensors.tick(state, TickStatus.FAILURE, 3, f"mirror_assets.tick_errors.TickFailed: {raised.value}\n")
    found = sensors.conditions()
    assert [(one.code, one.text, one.is_shared) for one in found] == [("token_refused", str(error), True)] * 2
    assert {one.cause for one in found} == {"token_refused https://a.example"}


def test_a_failed_tick_is_told_with_what_its_error_says_until_one_goes_well(sensors: Sensors) -> None:
    state = sensors.add("mirror", InstigatorStatus.RUNNING)
    sensors.tick(state, TickStatus.FAILURE, 3, "mirror_assets.errors.SettingError: no token. Next: set it.\n")
    sensors.tick(state, TickStatus.STARTED, 2)
    (condition,) = sensors.conditions()
    assert (condition.subject, condition.what, condition.text) == (
        "mirror",
        "its tick failed",
        "no token. Next: set it.",
    )
    assert condition.page == "locations/here/sensors/mirror"
    sensors.tick(state, TickStatus.SKIPPED, 1)
    assert sensors.wrong() == []


def test_a_sensor_that_a_person_has_stopped_is_told_where_sensors_are_on(sensors: Sensors) -> None:
    sensors.add("mirror", InstigatorStatus.STOPPED)
    assert sensors.wrong() == [("mirror", "is off", "A person has stopped it. Next: start it again.")]
    assert sensors.conditions()[0].severity is Severity.WARN
    assert sensors.wrong(are_on=False) == []


def test_a_sensor_that_does_not_tick_is_silent_unless_all_were(sensors: Sensors) -> None:
    mirror = sensors.add("mirror", InstigatorStatus.DECLARED_IN_CODE)
    alerts = sensors.add("alerts", InstigatorStatus.DECLARED_IN_CODE)
    sensors.tick(mirror, TickStatus.SKIPPED, 900)
    sensors.tick(alerts, TickStatus.SKIPPED, 900)
    assert sensors.wrong() == [], "the daemon was away"
    sensors.tick(alerts, TickStatus.SKIPPED, 150)
    assert [(name, what) for name, what, _ in sensors.wrong()] == [("mirror", "is silent")]
    sensors.tick(mirror, TickStatus.SKIPPED, 30)
    assert sensors.wrong() == []


def test_sensors_of_other_code_locations_are_none_of_ours(sensors: Sensors) -> None:
    sensors.add("mirror", InstigatorStatus.STOPPED, "elsewhere")
    assert sensors.wrong() == []


def test_a_sensor_that_was_removed_or_renamed_is_not_silent(sensors: Sensors) -> None:
    removed = sensors.add("mirror_all_batches", InstigatorStatus.DECLARED_IN_CODE)
    alerts = sensors.add("alerts", InstigatorStatus.DECLARED_IN_CODE)
    sensors.tick(removed, TickStatus.SKIPPED, 86_400)
    sensors.tick(alerts, TickStatus.SKIPPED, 150)
    assert sensors.wrong() == []


def test_checks_that_no_run_ends_well_are_overdue(sensors: Sensors) -> None:
    alerts = sensors.add("alerts", InstigatorStatus.DECLARED_IN_CODE)
    sensors.checked(2200)
    sensors.checked(10, "elsewhere")
    sensors.tick(alerts, TickStatus.SKIPPED, 150)
    assert sensors.wrong() == [], "the daemon was off until a moment ago"
    sensors.tick(alerts, TickStatus.SKIPPED, 2150)
    assert [(name, what) for name, what, _ in sensors.wrong()] == [("checks", "are overdue")]
    assert sensors.conditions()[0].page == "locations/here/schedules/checks"
    assert sensors.wrong(are_on=False) == [], "the schedule was never on"
    sensors.checked(1200)
    assert sensors.wrong() == []


def test_checks_whose_schedule_is_off_are_not_overdue(sensors: Sensors) -> None:
    alerts = sensors.add("alerts", InstigatorStatus.DECLARED_IN_CODE)
    sensors.tick(alerts, TickStatus.SKIPPED, 2150)
    sensors.add(CHECKS, InstigatorStatus.STOPPED, is_schedule=True)
    assert [(name, what) for name, what, _ in sensors.wrong()] == [("checks", "is off")]
