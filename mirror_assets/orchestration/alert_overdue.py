"""Finds that nobody runs the checks: a schedule whose runs don't begin, or don't end, fails no check."""

from __future__ import annotations

from dataclasses import dataclass, field

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import OVERDUE
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.orchestration.check_tables import CHECKS

_EVERY_SECONDS = 60.0


@dataclass
class OverdueLook:
    """Looks at when a run of the job `checks` ended well last, whoever had asked for it.

    It is overdue after so many `seconds`, or as long after the first look: a deployment that was off is not. `is_on`
    says whether the schedule is on unless a person has switched it. What is off is told as that, and not as overdue.
    """

    seconds: float
    is_on: bool
    _began: float | None = None
    _looked: float = 0.0
    _found: tuple[Condition, ...] = field(default=())

    def conditions(self, instance: dg.DagsterInstance, location: str, now: float) -> tuple[Condition, ...]:
        """Return what is overdue at `now`, in seconds since 1970; it asks once a minute."""
        if self._began is None:
            self._began = now
        if abs(now - self._looked) >= _EVERY_SECONDS:
            age = now - max(self._began, _ended(instance))
            is_late = age > self.seconds and self._runs(instance, location)
            self._found = (_overdue(location, age, self.seconds),) if is_late else ()
            self._looked = now
        return self._found

    def _runs(self, instance: dg.DagsterInstance, location: str) -> bool:
        for state in instance.all_instigator_state(instigator_type=InstigatorType.SCHEDULE):
            if state.instigator_name == CHECKS and state.repository_selector.location_name == location:
                return state.is_running
        return self.is_on


def _ended(instance: dg.DagsterInstance) -> float:
    """Return when a run of the checks ended well last, in seconds since 1970; 0 if none did."""
    well = dg.RunsFilter(job_name=CHECKS, statuses=[dg.DagsterRunStatus.SUCCESS])
    newest = instance.get_run_records(well, limit=1)
    return newest[0].end_time or 0.0 if newest else 0.0


def _overdue(location: str, age: float, seconds: float) -> Condition:
    text = (
        f"No run of the job {CHECKS} has ended well for {round(age / 60)} minutes, and one is due after "
        f"{round(seconds / 60)} at the latest: nobody looks at lag, retention and the mirror's state."
    )
    return Condition(
        id=f"{OVERDUE}{CHECKS}",
        topic=Topic.CHECK,
        severity=Severity.WARN,
        cause=f"overdue {CHECKS}",
        subject=CHECKS,
        what="are overdue",
        text=text,
        next_step="see that the daemon's scheduler is alive, and that runs are not queued for long.",
        page=f"locations/{location}/schedules/{CHECKS}",
    )
