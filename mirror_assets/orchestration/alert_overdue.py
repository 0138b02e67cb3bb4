"""Finds checks that nobody has evaluated for too long: a schedule that is off fails no check, and tells nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.alerts.conditions import Condition
from mirror_assets.config.alerts import Severity, Topic

OVERDUE = "overdue:"
# Checks become overdue by the minute, and to ask for those of 500 tables costs more than the rest of a look.
_EVERY_SECONDS = 60.0


@dataclass
class OverdueLook:
    """Looks at when a check was evaluated last; `tables` has the tables' names by their checks.

    A check that was never evaluated is not overdue: its table may be new.
    """

    tables: Mapping[dg.AssetCheckKey, str]
    seconds: float
    _looked: float = 0.0
    _found: tuple[Condition, ...] = field(default=())

    def conditions(self, instance: dg.DagsterInstance, now: float) -> tuple[Condition, ...]:
        """Return what is overdue at `now`, in seconds since 1970; it asks once a minute."""
        if abs(now - self._looked) >= _EVERY_SECONDS:
            newest = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(self.tables))
            ages = {key: now - record.create_timestamp for key, record in newest.items()}
            self._found = tuple(self._overdue(key, age) for key, age in ages.items() if age > self.seconds)
            self._looked = now
        return self._found

    def _overdue(self, key: dg.AssetCheckKey, age: float) -> Condition:
        name = key.name
        return Condition(
            id=f"{OVERDUE}{key.asset_key.to_user_string()}:{name}",
            topic=Topic.CHECK,
            severity=Severity.WARN,
            cause=f"overdue {name}",
            subject=self.tables[key],
            what=f"check {name} is overdue",
            text=f"The check {name} was evaluated {round(age / 60)} minutes ago, and is due each "
            f"{round(self.seconds / 60)} minutes.",
            next_step="see that the schedule that runs the checks is on, and that its runs are not queued for long.",
            check=name,
            page=f"assets/{'/'.join(key.asset_key.path)}?view=checks&checkDetail={name}",
            joins=True,
        )
