"""Leaves out what only follows from something else that is wrong, so that one fault is one message."""

from __future__ import annotations

from collections.abc import Container, Mapping

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.zone import ZONE
from mirror_assets.config.alerts import Topic
from mirror_assets.errors import ErrorCode

CHECK = "check:"
RUN = "run:"
TICK = "tick:"
OVERDUE = "overdue:"
_LAG = ":lag"
_NOT_FAILING = ":not_failing"
_OF_STAGED = "_change_feed:"


def without_consequences(wrong: Mapping[str, Condition], told: Container[str]) -> dict[str, Condition]:
    """Return what is wrong without what follows from it. What was `told` before stays, until it has ended itself.

    - A run that fails for a table follows from what the table's own state says.
    - So do its check `not_failing`, the checks of what it has staged, and `lag` while it does not move. Where such a
      check was told first, the table's state follows from it. So it does where the table is held.
    - Checks are overdue because their schedule is off, its tick fails, or its runs fail.
    """
    by_table: dict[str, list[Condition]] = {}
    for condition in wrong.values():
        by_table.setdefault(condition.subject, []).append(condition)
    return {
        key: condition
        for key, condition in wrong.items()
        if key in told or not _follows(condition, by_table[condition.subject], told)
    }


def _follows(condition: Condition, of_table: list[Condition], told: Container[str]) -> bool:
    others = [other for other in of_table if other.id != condition.id]
    if condition.id.startswith(RUN):
        return any(_explains_runs(other) for other in others)
    if condition.id.startswith(OVERDUE):
        return bool(others)
    if condition.id.endswith(_LAG):
        return any(other.topic in (Topic.TABLE, Topic.HELD, Topic.REBUILD) for other in others)
    if condition.id.endswith(_NOT_FAILING) or _is_of_staged(condition):
        return any(other.id.startswith(ZONE) and other.topic is Topic.TABLE for other in others)
    if condition.id.startswith(ZONE) and condition.topic is Topic.TABLE:
        return any(_says_why(other, condition, told) for other in others)
    return False


def _says_why(condition: Condition, failing: Condition, told: Container[str]) -> bool:
    """Return whether the condition tells already what the table's runs fail by."""
    if condition.topic is Topic.HELD:
        return True
    of_checks = failing.code == ErrorCode.CHECKS_FAILED.value
    return of_checks and _is_of_staged(condition) and condition.id in told


def _is_of_staged(condition: Condition) -> bool:
    return condition.id.startswith(CHECK) and _OF_STAGED in condition.id


def _explains_runs(condition: Condition) -> bool:
    """Return whether a run of the table fails because of this; that it is late or rebuilt says nothing of a failure."""
    if condition.topic is Topic.REBUILD or condition.id.endswith(_LAG):
        return False
    return not condition.id.startswith((RUN, TICK))
