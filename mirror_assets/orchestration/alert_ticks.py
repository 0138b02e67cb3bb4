"""Reads how the sensors and schedules are: those whose newest tick failed, that a person has stopped, or are silent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, InstigatorTick, TickStatus

from mirror_assets.alerts.causes import cause_of, split_next
from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import TICK
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.orchestration.tick_errors import split_code
from mirror_assets.redaction import redacted

_TICKS = 3
# Silence counts when this sensor itself has ticked before: after a restart of the daemon, all were silent.
_OWN_TICKS_SECONDS = (300.0, 100.0)


@dataclass(frozen=True)
class TickLook:
    """Looks at what ticks in one code location; `own` is the sensor that looks."""

    instance: dg.DagsterInstance
    location: str
    own: str
    silent_seconds: float
    are_on: bool

    def conditions(self, now: float) -> tuple[Condition, ...]:
        """Return what is wrong now."""
        states = [state for state in self.instance.all_instigator_state() if self._is_here(state)]
        awake = any(state.instigator_name == self.own and self._has_watched(state, now) for state in states)
        return tuple(
            condition
            for state in states
            if state.instigator_name != self.own
            for condition in self._of(state, now, awake)
        )

    def _is_here(self, state: InstigatorState) -> bool:
        return state.repository_selector.location_name == self.location

    def _has_watched(self, state: InstigatorState, now: float) -> bool:
        first, last = _OWN_TICKS_SECONDS
        origin, selector = state.instigator_origin_id, state.selector_id
        return bool(self.instance.get_ticks(origin, selector, after=now - first, before=now - last, limit=1))

    def _of(self, state: InstigatorState, now: float, awake: bool) -> Iterator[Condition]:  # noqa: FBT001
        if not state.is_running:
            if self.are_on and state.status is InstigatorStatus.STOPPED:
                yield self._condition(state, "is off", Severity.WARN, "A person has stopped it.", "switch it on again.")
            return
        ticks = self.instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=_TICKS)
        ended = next((tick for tick in ticks if tick.status is not TickStatus.STARTED), None)
        if ended is not None and ended.status is TickStatus.FAILURE:
            said, code = split_code(_why(ended))
            what, next_step = split_next(said)
            then = next_step or "read the tick's error; the sensor goes on by itself when it is mended."
            yield self._condition(state, "its tick failed", Severity.ERROR, what, then, code)
        elif awake and ticks and self._is_sensor(state) and now - ticks[0].timestamp > self.silent_seconds:
            what = f"It has not ticked for {round((now - ticks[0].timestamp) / 60)} minutes, though it is on."
            then = "see that the daemon's sensor threads and the code server are alive, and restart them."
            yield self._condition(state, "is silent", Severity.ERROR, what, then)

    @staticmethod
    def _is_sensor(state: InstigatorState) -> bool:
        return state.instigator_type is InstigatorType.SENSOR

    def _condition(
        self,
        state: InstigatorState,
        what: str,
        severity: Severity,
        text: str,
        next_step: str,
        code: str | None = None,
    ) -> Condition:
        name, kind = state.instigator_name, "sensors" if self._is_sensor(state) else "schedules"
        cause = cause_of(code, f"{kind} {what}", text, name)
        return Condition(
            id=f"{TICK}{name}",
            topic=Topic.TICK,
            severity=severity,
            cause=cause.key,
            subject=name,
            what=what,
            text=text,
            next_step=next_step,
            code=code,
            joins=cause.joins,
            page=f"locations/{self.location}/{kind}/{name}",
        )


def _why(tick: InstigatorTick) -> str:
    """Return what a tick's error says; of an error in our code, what that one says, without its class's path."""
    error = tick.error
    if error is None:
        return "The tick failed."
    message = (error.cause or error).message.strip().partition("\n")[0]
    kind, colon, rest = message.partition(": ")
    return redacted(rest if colon and rest and "." in kind and " " not in kind else message)
