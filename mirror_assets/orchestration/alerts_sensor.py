"""The sensor `alerts`: computes what is wrong now, and sends messages to the receivers (docs/decisions/0016).

Its memory, the open incidents and the messages that wait, is in Dagster's database. A tick waits a few seconds for the
landing zone and for receivers; a call that takes longer is picked up by a later tick.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.alerts.conditions import Condition, Kind
from mirror_assets.alerts.incidents import GATHER_MS, advance
from mirror_assets.alerts.messages import Pages, message_of
from mirror_assets.alerts.receivers import send
from mirror_assets.alerts.state import AlertState, Outcomes, Send, deliver
from mirror_assets.alerts.zone import ZoneReader
from mirror_assets.config import Config, OnBreak, When, with_found_tables
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.alert_checks import CheckReader
from mirror_assets.orchestration.alert_runs import RunReader
from mirror_assets.orchestration.alert_ticks import TickReader
from mirror_assets.orchestration.resources import LandingZone
from mirror_assets.orchestration.schedules import default_sensor_status, is_on
from mirror_assets.pipeline.daemon_pool import DaemonPool

SENSOR = "alerts"
_KEY = "mirror_assets/alerts"
_EVERY_SECONDS = 15
_ZONE_WAIT_SECONDS, _DELIVERY_WAIT_SECONDS = 8.0, 5.0
# How long a run of the schedule `checks` may take, before its results count.
_CHECKS_TAKE_MS = 120_000
_OF_ZONE = (Kind.TABLE, Kind.HELD, Kind.REBUILD)


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
        origin = context.code_location_origin
        location = origin.location_name if origin else ""
        return dg.SkipReason(alerts.tick(context.instance, landing_zone, context.repository_name or "", location))

    return sensor


@dataclass
class Alerts:
    """Computes conditions and sends messages; what it keeps between ticks only makes them cheap."""

    config: Config
    watched: Watched
    send: Send = send
    _zone: ZoneReader | None = None
    _reading: Future[list[Condition]] | None = None
    _sending: dict[str, Future[Outcomes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare to read, and a thread for the landing zone and each receiver: none keeps another one waiting."""
        self._checks = CheckReader(self.watched.checks)
        self._runs = RunReader(self.watched.jobs, self.watched.schedules)
        self._minutes = self.config.automation.checks_minutes(len(self.config.tables))
        self._pool = DaemonPool(SENSOR, 1 + len(self.config.alerts.receivers))

    def tick(
        self, instance: dg.DagsterInstance, zone: LandingZone, repository: str, location: str, now: float | None = None
    ) -> str:
        """Compute what is wrong, and send what is due; return a summary. `now` is in seconds since 1970."""
        at, storage = time.time() if now is None else now, instance.daemon_cursor_storage
        label, now_ms = f"{repository}@{location}", int(at * 1000)
        key = f"{_KEY}/{label}"
        before = AlertState.parse(storage.get_cursor_values({key}).get(key))
        tables = with_found_tables(self.config, When.NEVER)  # some may have been discovered since the start
        watched = self.watched.sensors | self.watched.schedules
        ticks = TickReader(instance, repository, location, watched, SENSOR, is_on(), self._minutes)
        found = [
            *self._checks.conditions(instance, tables.names),
            *self._runs.conditions(instance, label, tables.names, at),
            *ticks.conditions(at),
            *self._zone_conditions(tables, zone, before, at),
        ]
        state = self._advanced(before, {one.id: one for one in found}, now_ms)
        if state != before:  # saved before anything is sent, so that each beginning gets its end
            storage.set_cursor_values({key: state.model_dump_json()})
        after = state.settled(self._delivered(state, now_ms), now_ms)
        if after != state:
            storage.set_cursor_values({key: after.model_dump_json()})
        return _summary(after)

    def _advanced(self, state: AlertState, current: dict[str, Condition], now_ms: int) -> AlertState:
        """Return the state with incidents as they are now, and new messages in the outbox."""
        settings = self.config.alerts
        remind = None if settings.remind_hours is None else round(settings.remind_hours * 3_600_000)
        confirm = GATHER_MS if self._minutes is None else self._minutes * 60_000 + _CHECKS_TAKE_MS
        incidents, due = advance(state.incidents, current, now_ms, confirm, remind)
        pages = Pages(settings.dagster_url, settings.docs_url)
        messages = [message_of(event, incident, now_ms, pages) for event, incident in due]
        return AlertState(incidents=incidents, outbox=state.outbox).queued(messages, settings.receivers)

    def _zone_conditions(self, config: Config, zone: LandingZone, before: AlertState, now: float) -> list[Condition]:
        """Return what the landing zone says now; while it can't be read, also what it said last."""
        last = [one for incident in before.incidents if incident.gone_ms is None for one in incident.members]
        last = [one for one in last if one.kind in _OF_ZONE]
        try:
            if self._zone is None:
                self._zone = ZoneReader(zone.open())
            if self._reading is None:
                is_held = partial(_is_held, config)
                self._reading = self._pool.submit(partial(self._zone.conditions, config.names, is_held, now))
            found = self._reading.result(_ZONE_WAIT_SECONDS)
        except NotDone:
            return last
        except MirrorError as error:
            self._reading = None
            return [*last, _unreadable(error)]
        self._reading = None
        return found

    def _delivered(self, state: AlertState, now_ms: int) -> Outcomes:
        """Send what is ready to all receivers at once; return the outcomes so far."""
        for name, receiver in self.config.alerts.receivers.items():
            entries = state.ready(name, now_ms)
            if entries and name not in self._sending:
                self._sending[name] = self._pool.submit(partial(deliver, entries, receiver, self.send))
        deadline, outcomes = time.monotonic() + _DELIVERY_WAIT_SECONDS, Outcomes()
        for name, future in list(self._sending.items()):
            try:
                outcomes |= future.result(max(0.0, deadline - time.monotonic()))
            except NotDone:
                continue
            del self._sending[name]
        return outcomes


def _is_held(config: Config, name: TableName) -> bool:
    return config.table(str(name)).on_break is OnBreak.HOLD


def _unreadable(error: MirrorError) -> Condition:
    code = error.code.value
    return Condition(
        id="zone", kind=Kind.ZONE, subject="landing zone", what=f"can't be read ({code})", text=str(error), code=code
    )


def _summary(state: AlertState) -> str:
    """Return what is open and what waits, for the sensor's page."""
    worst = [f"{one.example.subject}: {one.example.what}" for one in state.incidents]
    parts = [f"{len(worst)} incidents ({'; '.join(worst[:3])})" if worst else "nothing is wrong"]
    if state.outbox:
        parts.append(f"{len(state.outbox)} messages wait")
    why = {entry.receiver: entry.why for entry in state.outbox if entry.why}
    return "; ".join((*parts, *(f"{name}: {text}" for name, text in why.items())))
