"""The sensor `alerts`: looks at what is wrong, and tells the receivers (docs/decisions/0016).

Its state lies in Dagster's database, beside the cursors of Dagster's own daemons. The tick waits a few seconds for the
landing zone and for receivers; what takes longer goes on beside it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import OVERDUE, TICK, without_consequences
from mirror_assets.alerts.couriers import Couriers
from mirror_assets.alerts.incidents import Pace, advance
from mirror_assets.alerts.messages import Pages, message_of
from mirror_assets.alerts.outbox import queued, ready, settled
from mirror_assets.alerts.state import AlertState
from mirror_assets.alerts.zone import ZoneLook, ZoneSeen, epochs_seen, with_zone
from mirror_assets.config import Config
from mirror_assets.config.alerts import AlertsConfig
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.alert_checks import read_checks
from mirror_assets.orchestration.alert_overdue import OverdueLook
from mirror_assets.orchestration.alert_runs import TableNames, read_runs, without_ended
from mirror_assets.orchestration.alert_ticks import TickLook
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.resources import LandingZone
from mirror_assets.orchestration.schedules import default_sensor_status, is_on

SENSOR = "alerts"
_KEY = "mirror_assets/alerts"
_ZONE_WAIT_SECONDS, _DELIVERY_WAIT_SECONDS = 8.0, 5.0
_STEPS = ("", "_checks", "_staged")


def alerts_sensor(config: Config) -> dg.SensorDefinition:
    """Return the sensor that tells the receivers of `alerts` what is wrong."""
    watch = AlertWatch(config)

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=max(1, round(config.alerts.every_seconds)),
        default_status=default_sensor_status(),
        description=f"Tells {', '.join(config.alerts.receivers)} when something is wrong, and when it has ended.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing_zone: LandingZone) -> dg.SkipReason:
        origin = context.code_location_origin
        return dg.SkipReason(watch.tick(context.instance, landing_zone, origin.location_name if origin else ""))

    return sensor


def pace_of(settings: AlertsConfig) -> Pace:
    """Return when messages are due."""
    remind = None if settings.remind_hours is None else round(settings.remind_hours * 3_600_000)
    return Pace(round(settings.gather_seconds * 1000), round(settings.settle_seconds * 1000), remind)


class AlertStore:
    """Keeps the state of a code location's alerts in Dagster's database."""

    def __init__(self, instance: dg.DagsterInstance, location: str) -> None:
        """Read nothing yet."""
        self._storage, self._key = instance.daemon_cursor_storage, f"{_KEY}/{location}"
        self._text: str | None = None

    def load(self) -> AlertState:
        """Return the state that was saved last; a new one at first."""
        self._text = self._storage.get_cursor_values({self._key}).get(self._key)
        return AlertState.parse(self._text)

    def save(self, state: AlertState) -> None:
        """Save the state, unless it is what was read or saved last."""
        text = state.model_dump_json()
        if text != self._text:
            self._storage.set_cursor_values({self._key: text})
            self._text = text


@dataclass
class _ZoneThread:
    """Looks at the landing zone beside the tick: a store that does not answer keeps no tick waiting for long."""

    look: ZoneLook
    _work: threading.Thread | None = None
    _found: ZoneSeen | None = None

    def seen(self) -> ZoneSeen | None:
        """Return what the zone says; None when it takes longer, or does not say."""
        if self._work is None or not self._work.is_alive():
            self._found = None
            self._work = threading.Thread(target=self._run, name="alerts of the zone", daemon=True)
            self._work.start()
        self._work.join(_ZONE_WAIT_SECONDS)
        return None if self._work.is_alive() else self._found

    def _run(self) -> None:
        self._found = self.look.seen()


@dataclass
class AlertWatch:
    """What is kept between ticks to make them cheap, and to know what is on its way; losing it costs little."""

    config: Config
    couriers: Couriers = field(default_factory=Couriers)
    _zone: _ZoneThread | None = None
    _overdue: OverdueLook | None = None

    def __post_init__(self) -> None:
        """Name the tables by their assets, steps and checks, once."""
        tables = [(table.name, str(table.name)) for table in self.config.all_tables()]
        self._by_asset = {asset_key(kind, name).to_user_string(): text for name, text in tables for kind in Kind}
        steps = {
            "__".join(asset_key(kind, name).path) + ending: text
            for name, text in tables
            for kind in Kind
            for ending in _STEPS
        }
        self._tables = TableNames(steps, frozenset(text for _, text in tables))
        every = self.config.automation.checks_minutes(len(self.config.tables))
        late = self.config.alerts.overdue_minutes
        if every is not None and late is not None:
            self._overdue = OverdueLook((every + late) * 60.0, is_on())

    def tick(self, instance: dg.DagsterInstance, zone: LandingZone, location: str, now: float | None = None) -> str:
        """Look once, and deliver what is due; return what is open, in a few words. `now` is in seconds since 1970."""
        settings, at = self.config.alerts, time.time() if now is None else now
        now_ms = int(at * 1000)
        store = AlertStore(instance, location)
        state = self._looked(store.load(), instance, zone, location, at)
        arrived = self.couriers.outcomes(0.0)
        state = state.model_copy(update={"outbox": settled(state.outbox, arrived, now_ms)})
        store.save(state)  # before anything is sent: what is begun here is ended by whoever comes next
        self.couriers.begin(ready(state.outbox, settings.receivers, now_ms), settings.receivers)
        outcomes = self.couriers.outcomes(_DELIVERY_WAIT_SECONDS)
        state = state.model_copy(update={"outbox": settled(state.outbox, outcomes, now_ms)})
        store.save(state)
        return _shown(state)

    def _looked(
        self, state: AlertState, instance: dg.DagsterInstance, zone: LandingZone, location: str, now: float
    ) -> AlertState:
        """Return the state after a look: incidents as they are now, and their messages in the outbox."""
        settings, now_ms, told = self.config.alerts, int(now * 1000), state.conditions
        checks = read_checks(instance, state.checks_read, self._by_asset, now)
        runs = read_runs(instance, state.runs_read, self._tables)
        wrong = checks.over({key: one for key, one in told.items() if self._is_ours(one)}, now_ms)
        wrong = without_ended(instance, wrong | {one.id: one for one in runs.failing}, now)
        seen = self._seen_of(zone)
        wrong = with_zone(wrong, seen, state.rebuilt)
        ticks = TickLook(instance, location, SENSOR, settings.silent_minutes * 60, is_on()).conditions(now)
        overdue = self._overdue.conditions(instance, location, now) if self._overdue is not None else ()
        wrong = {key: one for key, one in wrong.items() if not key.startswith((TICK, OVERDUE))}
        wrong |= {one.id: one for one in (*ticks, *overdue)}
        turn = advance(state.incidents, without_consequences(wrong, told), now_ms, pace_of(settings))
        pages = Pages(settings.dagster_url, settings.docs_url)
        messages = [message_of(due, now_ms, pages) for due in turn.due]
        outbox = queued(state.outbox, messages, settings.receivers)
        return AlertState(
            incidents=turn.incidents,
            outbox=outbox,
            checks_read=checks.read_to,
            runs_read=runs.read_to,
            rebuilt=epochs_seen(seen, state.rebuilt),
        )

    def _is_ours(self, condition: Condition) -> bool:
        """Return whether what was wrong is still of a table that is mirrored, or of no table at all."""
        return not condition.id.startswith("check:") or condition.subject in self._tables.names

    def _seen_of(self, zone: LandingZone) -> ZoneSeen | None:
        if self._zone is None:
            try:
                self._zone = _ZoneThread(ZoneLook(zone.open(), frozenset(self.config.names)))
            except MirrorError:
                return None  # the runs say so
        return self._zone.seen()


def _shown(state: AlertState) -> str:
    """Return what is open and what waits, as the sensor's page shows it."""
    worst: Mapping[str, str] = {one.id: f"{one.example.subject}: {one.example.what}" for one in state.incidents}
    away = {entry.receiver: entry.why for entry in state.outbox if entry.why}
    parts = [f"{len(worst)} incidents ({'; '.join(list(worst.values())[:3])})" if worst else "nothing is wrong"]
    if state.outbox:
        parts.append(f"{len(state.outbox)} messages wait")
    return "; ".join((*parts, *(f"{name}: {why}" for name, why in away.items())))
