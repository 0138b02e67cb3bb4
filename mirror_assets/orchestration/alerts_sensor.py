"""The sensor `alerts`: computes what is wrong now, and sends messages to the receivers (docs/decisions/0016).

Its memory is in Dagster's database. A tick waits a few seconds for the landing zone; a read that takes longer is picked
up by a later tick.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass, field, replace
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
from mirror_assets.orchestration.check_tables import CHECKS
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import LandingZone, resource_keys, zone_of
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


def alerts_sensor(
    assets: MirrorAssets, checks: CheckReader, runs: RunReader, ticking: frozenset[str]
) -> dg.SensorDefinition:
    """Return the sensor that sends alerts to the receivers; `ticking` are the sensors and schedules that it watches."""
    alerts, receivers = Alerts(assets, checks, runs, ticking), ", ".join(assets.config.alerts.receivers)

    @dg.sensor(
        name=assets.full_name(SENSOR),
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=default_sensor_status(),
        description=f"Sends alerts to {receivers} when a problem starts and when it ends.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        zone = zone_of(assets, context.resources)
        return dg.SkipReason(alerts.tick(context.instance, zone, Location.of(context)))

    return sensor


@dataclass
class Alerts:
    """Computes conditions and sends messages; its memory between ticks only makes them cheap."""

    assets: MirrorAssets
    checks: CheckReader
    runs: RunReader
    ticking: frozenset[str]
    send: Send = send
    _found_at: float = 0.0
    _zone: ZoneReader | None = None
    _reading: Future[list[Condition]] | None = None
    _thread: DaemonPool = field(default_factory=lambda: DaemonPool(SENSOR, 1))

    def __post_init__(self) -> None:
        """Read the interval of the schedule `checks`, which stays when other tables are found."""
        self._config = config = self.assets.config
        self._minutes = config.automation.checks_minutes(len(config.tables))

    def tick(
        self, instance: dg.DagsterInstance, zone: LandingZone, location: Location, now: float | None = None
    ) -> str:
        """Compute what is wrong, and send what is due; return a summary. `now` is in seconds since 1970."""
        at, storage = time.time() if now is None else now, instance.daemon_cursor_storage
        key, now_ms = "/".join(filter(None, (_KEY, location.label, self.assets.name))), int(at * 1000)
        before = AlertState.parse(storage.get_cursor_values({key}).get(key))
        if abs(at - self._found_at) >= _TABLES_SECONDS:  # some may have been discovered since the start
            self._config, self._found_at = with_found_tables(self.assets.config, When.NEVER), at
            if self._config.names != self.assets.config.names:
                self.assets = self.assets.with_config(self._config)
        assets, config = self.assets, self._config
        found = [
            *self.checks.conditions(instance, assets),
            *self.runs.conditions(instance, location, assets, at),
            *tick_conditions(
                instance,
                location,
                self.ticking,
                assets.full_name(SENSOR),
                assets.full_name(CHECKS),
                self._minutes,
                at,
            ),
            *self._zone_conditions(zone, before, at),
        ]
        confirm_ms = GATHER_MS if self._minutes is None else self._minutes * 60_000 + _CHECKS_TAKE_MS
        conditions = {one.id: one for one in _with_places(found, config)}
        incidents = advance(before.incidents, conditions, now_ms, confirm_ms)
        state = before.model_copy(update={"incidents": tuple(incidents)})
        if state != before:  # saved before anything is sent, so that each beginning gets its end
            storage.set_cursor_values({key: state.model_dump_json()})
        after = state.delivered(config.alerts, self.send, now_ms)
        if after != state:
            storage.set_cursor_values({key: after.model_dump_json()})
        worst = [f"{one.example.subject}: {one.example.what}" for one in after.incidents]
        open_now = f"{len(worst)} incidents ({'; '.join(worst[:3])})" if worst else "nothing is wrong"
        return "; ".join((open_now, *(f"{name}: {pause.why}" for name, pause in after.pauses.items())))

    def _zone_conditions(self, zone: LandingZone, before: AlertState, now: float) -> list[Condition]:
        """Return what the landing zone says now; while it can't be read, also what it said last."""
        last = [one for incident in before.incidents if incident.gone_ms is None for one in incident.members]
        last, config = [one for one in last if one.kind in _OF_ZONE], self._config

        def is_held(name: TableName) -> bool:
            return config.table(str(name)).on_break is OnBreak.HOLD

        try:
            self._zone = self._zone or ZoneReader(zone.open())
            if self._reading is None:
                self._reading = self._thread.submit(partial(self._zone.conditions, config.names, is_held, now))
            found = self._reading.result(_ZONE_WAIT_SECONDS)
        except NotDone:
            return last
        except MirrorError as error:
            self._reading, code = None, error.code.value
            what = f"can't be read ({code})"
            return [*last, Condition("zone", ConditionKind.ZONE, "landing zone", what, str(error), code=code)]
        self._reading = None
        return found


def _with_places(conditions: Iterable[Condition], config: Config) -> Iterator[Condition]:
    """Yield the conditions, and those of places that are not listed as before.

    Those of discovered tables that may be lost get their place, and so its incident.
    """
    found = config.discovered
    places = {table.name: found.rules[table.rule].place for table in found.tables if table.state.is_mirrored}
    for one in conditions:
        yield replace(one, place=places[one.subject]) if one.code in _LOST and one.subject in places else one
    for rule in found.rules:
        if rule.trouble:
            key, what = f"place:{rule.place}", "is not listed as before"
            yield Condition(key, ConditionKind.PLACE, rule.place, what, rule.trouble, code=rule.code, place=rule.place)
