"""Reads the sensors and schedules of this code location: failed ticks, stopped or silent ones, and overdue checks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import dagster as dg

from mirror_assets.alerts.conditions import Condition, ConditionKind, with_next
from mirror_assets.config.alerts import Severity
from mirror_assets.orchestration.alert_runs import SUCCEEDED, first_line, newest_runs
from mirror_assets.orchestration.dagster_internals import InstigatorState, InstigatorStatus, InstigatorType, TickStatus
from mirror_assets.orchestration.run_tags import Location
from mirror_assets.orchestration.schedules import is_on
from mirror_assets.orchestration.tick_errors import split_code
from mirror_assets.redaction import redacted

_TICKS = 3
_SILENT_SECONDS, _LATE_SECONDS = 600.0, 1800.0
# Silence and lateness count if the sensor of alerts itself has ticked before that: else the daemon was off.
_AWAKE_SECONDS, _WINDOW_SECONDS = 100.0, 200.0


def tick_conditions(
    instance: dg.DagsterInstance,
    location: Location,
    names: Collection[str],
    own: str,
    checks: str,
    minutes: int | None,
    now: float,
) -> Iterator[Condition]:
    """Yield what is wrong with the sensors and schedules of these names, at `now` in seconds since 1970.

    `own` is the sensor of alerts, `checks` the schedule of checks. `minutes` is its interval, None where it has none.
    """
    states = dict[str, InstigatorState]()
    for state in instance.all_instigator_state():
        place = state.repository_selector
        if (place.repository_name, place.location_name) == location:
            states[state.instigator_name] = state
    own_state = states.get(own)
    is_awake = own_state is not None and _has_ticked(instance, own_state, now - _AWAKE_SECONDS)
    for state in (state for name, state in states.items() if name in names):
        yield from _conditions_of(instance, state, location, now, is_awake=is_awake)
    if minutes is None or own_state is None:
        return
    are_on, seconds = states[checks].is_running if checks in states else is_on(), minutes * 60 + _LATE_SECONDS
    if not are_on or not _has_ticked(instance, own_state, now - seconds):
        return
    newest = newest_runs(instance, location, checks, SUCCEEDED)
    if not newest or (newest[0].end_time or 0.0) < now - seconds:
        text = with_next(
            f"No run of the job {checks} has ended well for {round(seconds / 60)} minutes; one is due every {minutes} "
            "minutes. Lag, retention and the mirror's state are not checked.",
            "check that the daemon's scheduler is alive, and that runs are not queued for long.",
        )
        page = f"locations/{location.name}/schedules/{checks}"
        yield Condition(
            f"overdue:{checks}", ConditionKind.OVERDUE, checks, "are overdue", text, Severity.WARN, page=page
        )


def _has_ticked(instance: dg.DagsterInstance, state: InstigatorState, before: float) -> bool:
    """Return whether it has ticked in the minutes before a time."""
    after, origin = before - _WINDOW_SECONDS, state.instigator_origin_id
    return bool(instance.get_ticks(origin, state.selector_id, after=after, before=before, limit=1))


def _conditions_of(
    instance: dg.DagsterInstance, state: InstigatorState, location: Location, now: float, *, is_awake: bool
) -> Iterator[Condition]:
    """Yield what is wrong with one sensor or schedule."""
    is_sensor, name = state.instigator_type is InstigatorType.SENSOR, state.instigator_name
    kind = "sensors" if is_sensor else "schedules"
    key, page = f"tick:{kind}:{name}", f"locations/{location.name}/{kind}/{name}"
    if not state.is_running:
        if is_on() and state.status is InstigatorStatus.STOPPED:
            text = with_next("A person has stopped it.", "start it again.")
            yield Condition(key, ConditionKind.TICK, name, "is off", text, Severity.WARN, page=page)
        return
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=_TICKS)
    ended = next((tick for tick in ticks if tick.status is not TickStatus.STARTED), None)
    silent_seconds = now - ticks[0].timestamp if ticks and is_sensor else 0.0
    if ended is not None and ended.status is TickStatus.FAILURE:
        error = ended.error.cause or ended.error if ended.error is not None else None
        text, code = split_code(redacted(first_line(error.message)) if error is not None else "The tick failed.")
        text = with_next(text, "read the tick's error; this ends with the next tick that succeeds.")
        yield Condition(key, ConditionKind.TICK, name, "its tick failed", text, code=code, page=page)
    elif is_awake and silent_seconds > _SILENT_SECONDS:
        text = with_next(
            f"It has not ticked for {round(silent_seconds / 60)} minutes, though it is on.",
            "check that the daemon's sensor threads and the code server are alive, and restart them.",
        )
        yield Condition(key, ConditionKind.TICK, name, "is silent", text, page=page)
