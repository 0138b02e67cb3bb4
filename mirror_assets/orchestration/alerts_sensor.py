"""The sensor `alerts`: computes what is wrong now, and sends messages to the receivers (docs/decisions/0016).

Its memory is in Dagster's database. A tick waits a few seconds for the landing zone; a read that takes longer is picked
up by a later tick.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, replace
from functools import partial

import dagster as dg

from mirror_assets.alerts.conditions import Condition, ConditionKind
from mirror_assets.alerts.incidents import GATHER_MS, advance
from mirror_assets.alerts.receivers import send
from mirror_assets.alerts.state import AlertState, Send
from mirror_assets.alerts.zone import ZoneReader
from mirror_assets.config import Config, OnBreak, When, with_found_tables
from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.alert_checks import CheckReader
from mirror_assets.orchestration.alert_runs import RunReader
from mirror_assets.orchestration.alert_ticks import tick_conditions
from mirror_assets.orchestration.resources import LandingZone
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.pipeline.daemon_pool import DaemonPool

SENSOR = "alerts"
_KEY = "mirror_assets/alerts"
_EVERY_SECONDS = 15
_ZONE_WAIT_SECONDS, _TABLES_SECONDS = 8.0, 60.0
# How long a run of the schedule `checks` may take, before its results count.
_CHECKS_TAKE_MS = 120_000
# Codes of a table that was deleted, whose mount vanished, or whose grant was revoked.
_LOST = (ErrorCode.SOURCE_NOT_DELTA.value, ErrorCode.SOURCE_UNREADABLE.value)
_OF_ZONE = (ConditionKind.TABLE, ConditionKind.HELD, ConditionKind.REBUILD)


@dataclass(frozen=True)
class Watched:
    """Names of the definitions that are watched: jobs, sensors, schedules (also names of jobs), and checks."""

    jobs: frozenset[str]
    sensors: frozenset[str]
    schedules: frozenset[str]
    checks: frozenset[dg.AssetCheckKey]


def alerts_sensor(config: Config, watched: Watched) -> dg.SensorDefinition:
    """Return the sensor that sends alerts to the receivers."""
    alerts = Alerts(config, watched)

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=default_sensor_status(),
        description=f"Sends alerts to {', '.join(config.alerts.receivers)} when a problem starts and when it ends.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing_zone: LandingZone) -> dg.SkipReason:
        return dg.SkipReason(alerts.tick(context.instance, landing_zone, Location.of(context)))

    return sensor


@dataclass
class Alerts:
    """Computes conditions and sends messages; what it keeps between ticks only makes them cheap."""

    config: Config
    watched: Watched
    send: Send = send
    _found_at: float = 0.0
    _zone: ZoneReader | None = None
    _reading: Future[list[Condition]] | None = None

    def __post_init__(self) -> None:
        """Prepare to read."""
        self._checks = CheckReader(self.watched.checks)
        self._runs = RunReader(self.watched.jobs, self.watched.schedules)
        self._minutes = self.config.automation.checks_minutes(len(self.config.tables))
        self._thread = DaemonPool(SENSOR, 1)

    def tick(
        self, instance: dg.DagsterInstance, zone: LandingZone, location: Location, now: float | None = None
    ) -> str:
        """Compute what is wrong, and send what is due; return a summary. `now` is in seconds since 1970."""
        at, storage = time.time() if now is None else now, instance.daemon_cursor_storage
        key, now_ms = f"{_KEY}/{location.label}", int(at * 1000)
        before = AlertState.parse(storage.get_cursor_values({key}).get(key))
        if abs(at - self._found_at) >= _TABLES_SECONDS:  # some may have been discovered since the start
            self.config, self._found_at = with_found_tables(self.config, When.NEVER), at
        sensors = self.watched.sensors | self.watched.schedules
        found = [
            *self._checks.conditions(instance, self.config.names),
            *self._runs.conditions(instance, location, self.config.names, at),
            *tick_conditions(instance, location, sensors, SENSOR, self._minutes, at),
            *self._zone_conditions(zone, before, at),
        ]
        found = [*_with_places(found, self.config), *_place_conditions(self.config)]
        confirm_ms = GATHER_MS if self._minutes is None else self._minutes * 60_000 + _CHECKS_TAKE_MS
        incidents = advance(before.incidents, {one.id: one for one in found}, now_ms, confirm_ms)
        state = before.model_copy(update={"incidents": tuple(incidents)})
        if state != before:  # saved before anything is sent, so that each beginning gets its end
            storage.set_cursor_values({key: state.model_dump_json()})
        after = state.delivered(self.config.alerts, self.send, now_ms)
        if after != state:
            storage.set_cursor_values({key: after.model_dump_json()})
        return _summary(after)

    def _zone_conditions(self, zone: LandingZone, before: AlertState, now: float) -> list[Condition]:
        """Return what the landing zone says now; while it can't be read, also what it said last."""
        last = [one for incident in before.incidents if incident.gone_ms is None for one in incident.members]
        last = [one for one in last if one.kind in _OF_ZONE]
        try:
            self._zone = self._zone or ZoneReader(zone.open())
            if self._reading is None:
                is_held = partial(_is_held, self.config)
                self._reading = self._thread.submit(partial(self._zone.conditions, self.config.names, is_held, now))
            found = self._reading.result(_ZONE_WAIT_SECONDS)
        except NotDone:
            return last
        except MirrorError as error:
            self._reading, code = None, error.code.value
            what = f"can't be read ({code})"
            return [*last, Condition("zone", ConditionKind.ZONE, "landing zone", what, str(error), code=code)]
        self._reading = None
        return found


def _is_held(config: Config, name: TableName) -> bool:
    return config.table(str(name)).on_break is OnBreak.HOLD


def _place_conditions(config: Config) -> Iterator[Condition]:
    for rule in config.discovered.rules:
        if rule.trouble:
            key, what = f"place:{rule.place}", "is not listed as before"
            yield Condition(key, ConditionKind.PLACE, rule.place, what, rule.trouble, code=rule.code, place=rule.place)


def _with_places(conditions: Iterable[Condition], config: Config) -> Iterator[Condition]:
    """Yield the conditions; those of discovered tables that may be lost get their place, and so its incident."""
    found = config.discovered
    places = {table.name: found.rules[table.rule].place for table in found.tables if table.state.is_mirrored}
    for one in conditions:
        yield replace(one, place=places[one.subject]) if one.code in _LOST and one.subject in places else one


def _summary(state: AlertState) -> str:
    """Return what is open, and receivers that take nothing, for the sensor's page."""
    worst = [f"{one.example.subject}: {one.example.what}" for one in state.incidents]
    parts = [f"{len(worst)} incidents ({'; '.join(worst[:3])})" if worst else "nothing is wrong"]
    return "; ".join((*parts, *(f"{name}: {pause.why}" for name, pause in state.pauses.items())))
