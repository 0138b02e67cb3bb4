"""Reads the sensors and schedules of this code location: failed ticks, stopped or silent ones, and overdue checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, TickStatus

from mirror_assets.alerts.conditions import Condition, Kind
from mirror_assets.config.alerts import Severity
from mirror_assets.orchestration.alert_runs import first_line, newest_success
from mirror_assets.orchestration.check_tables import CHECKS
from mirror_assets.orchestration.tick_errors import split_code
from mirror_assets.redaction import redacted

_TICKS = 3
_SILENT_SECONDS, _LATE_SECONDS = 600.0, 1800.0
# Silence and lateness count if the sensor of alerts itself has ticked before that: else the daemon was off.
_AWAKE_SECONDS, _WINDOW_SECONDS = 100.0, 200.0


@dataclass(frozen=True)
class TickReader:
    """Reads the sensors and schedules with these names, of one repository in one code location.

    `own` is the sensor of alerts. `are_on` is whether they run unless a person stops them. `check_minutes` is the
    interval of the schedule `checks`, None where it has none.
    """

    instance: dg.DagsterInstance
    repository: str
    location: str
    names: frozenset[str]
    own: str
    are_on: bool
    check_minutes: int | None

    def conditions(self, now: float) -> Iterator[Condition]:
        """Yield what is wrong at `now`, in seconds since 1970."""
        found = {state.instigator_name: state for state in self.instance.all_instigator_state() if self._is_ours(state)}
        own = found.pop(self.own, None)
        is_awake = own is not None and self._has_ticked(own, now - _AWAKE_SECONDS)
        for state in found.values():
            yield from self._of(state, now, is_awake=is_awake)
        checks, seconds = found.get(CHECKS), (self.check_minutes or 0) * 60 + _LATE_SECONDS
        are_running = self.are_on if checks is None else checks.is_running
        if self.check_minutes and are_running and own is not None and self._has_ticked(own, now - seconds):
            yield from self._overdue(now, seconds)

    def _is_ours(self, state: InstigatorState) -> bool:
        place = state.repository_selector
        is_here = (place.repository_name, place.location_name) == (self.repository, self.location)
        return is_here and state.instigator_name in (*self.names, self.own)

    def _has_ticked(self, state: InstigatorState, before: float) -> bool:
        """Return whether it has ticked in the minutes before a time."""
        after = before - _WINDOW_SECONDS
        origin, selector = state.instigator_origin_id, state.selector_id
        return bool(self.instance.get_ticks(origin, selector, after=after, before=before, limit=1))

    def _of(self, state: InstigatorState, now: float, *, is_awake: bool) -> Iterator[Condition]:
        if not state.is_running:
            if self.are_on and state.status is InstigatorStatus.STOPPED:
                next_step = "start it again."
                yield self._condition(state, "is off", "A person has stopped it.", next_step, severity=Severity.WARN)
            return
        ticks = self.instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=_TICKS)
        ended = next((tick for tick in ticks if tick.status is not TickStatus.STARTED), None)
        minutes = (now - ticks[0].timestamp) / 60 if ticks and _is_sensor(state) else 0.0
        if ended is not None and ended.status is TickStatus.FAILURE:
            error = ended.error.cause or ended.error if ended.error is not None else None
            text, code = split_code(redacted(first_line(error.message)) if error is not None else "The tick failed.")
            next_step = "read the tick's error; this ends with the next tick that succeeds."
            yield self._condition(state, "its tick failed", text, next_step, code=code)
        elif is_awake and minutes * 60 > _SILENT_SECONDS:
            text = f"It has not ticked for {round(minutes)} minutes, though it is on."
            next_step = "check that the daemon's sensor threads and the code server are alive, and restart them."
            yield self._condition(state, "is silent", text, next_step)

    def _condition(
        self,
        state: InstigatorState,
        what: str,
        text: str,
        next_step: str,
        *,
        severity: Severity = Severity.ERROR,
        code: str | None = None,
    ) -> Condition:
        name, kind = state.instigator_name, "sensors" if _is_sensor(state) else "schedules"
        return Condition(
            id=f"tick:{kind}:{name}",
            kind=Kind.TICK,
            subject=name,
            what=what,
            text=text,
            next_step=next_step,
            severity=severity,
            code=code,
            page=f"locations/{self.location}/{kind}/{name}",
        )

    def _overdue(self, now: float, seconds: float) -> Iterator[Condition]:
        """Yield that no run of the schedule `checks` has ended well for so long."""
        if now - newest_success(self.instance, CHECKS, f"{self.repository}@{self.location}") > seconds:
            yield Condition(
                id=f"overdue:{CHECKS}",
                kind=Kind.OVERDUE,
                subject=CHECKS,
                what="are overdue",
                text=f"No run of the job {CHECKS} has ended well for {round(seconds / 60)} minutes; one is due every "
                f"{self.check_minutes} minutes. Lag, retention and the mirror's state are not checked.",
                next_step="check that the daemon's scheduler is alive, and that runs are not queued for long.",
                severity=Severity.WARN,
                page=f"locations/{self.location}/schedules/{CHECKS}",
            )


def _is_sensor(state: InstigatorState) -> bool:
    return state.instigator_type is InstigatorType.SENSOR
