"""The health of a table, in a word and a sentence: the worst result of its checks that read no rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial

from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.leases import holder
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, check_not_failing, check_not_held, zone_state
from mirror_assets.pipeline.pending import PendingCommits, feed_deadline, table_lag
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.replicating import REPLICATING, Replication, check_replicating
from mirror_assets.verify.timeliness import check_lag, check_retention


class Urgency(str, Enum):
    """How soon a person should act, the most urgent first."""

    NOW = "now"
    SOON = "soon"
    NOT = "not"

    @property
    def rank(self) -> int:
        """Its place in that order."""
        return list(Urgency).index(self)


@dataclass(frozen=True)
class TableHealth:
    """The word, such as `held`, the reason (empty if healthy), and how soon a person should act."""

    word: str
    why: str
    urgency: Urgency


# A run that begins now may still start its Spark.
_START_SECONDS = 60.0
_WORDS = {
    NOT_HELD: ("held", "held"),
    NOT_FAILING: ("failing", "failing"),
    REPLICATING: ("mirror stopped", "mirror warns"),
    "retention": ("expiring", "expiring"),
    "lag": ("late", "late"),
}


def table_health(
    context: TableContext, pending: PendingCommits, seen: Replication | None, now: float, *, has_runs: bool
) -> TableHealth:
    """Return the table's health at `now` (seconds since 1970); `seen` is None if the mirror could not be read.

    `has_runs`: a run mirrors tables now. A cause comes before its consequence: a table on hold is also late. Raises
    what the log and the store raise.
    """
    lag, idle = table_lag(pending, now), ""
    if lag.seconds > _START_SECONDS and not has_runs and holder(context.store, context.name) is None:
        idle = "no run mirrors it: switch the sensor `mirror` on, or start `mirror-assets run`"
    warned: TableHealth | None = None
    # The checks after the first error are not run: they may not even be able to.
    for result in _results(context, pending, seen, now):
        if result.passed:
            continue
        urgent, warning = _WORDS[result.check]
        why = f"{result.advice}; {idle}" if idle and result.check == "lag" else result.advice
        if not result.is_warning:
            return TableHealth(urgent, why, Urgency.NOW)
        warned = warned or TableHealth(warning, why, Urgency.SOON)
    if warned is not None:
        return warned
    if idle:
        return TableHealth("waiting", idle, Urgency.NOT)
    if pending.waits:
        return TableHealth("catching up", "", Urgency.NOT)
    is_applied = seen is None or seen.version is None or seen.version >= pending.covered
    return TableHealth("up to date" if is_applied else "applying", "", Urgency.NOT)


def _results(
    context: TableContext, pending: PendingCommits, seen: Replication | None, now: float
) -> Iterator[CheckResult]:
    """Yield the results, causes first."""
    table, lag, deadline = context.table, table_lag(pending, now), feed_deadline(context, pending, now)
    plan = cache(partial(plan_table, context))
    zone = zone_state(context)
    yield check_not_failing(context, zone, plan)
    yield check_not_held(context, zone, plan)
    if seen is not None:
        yield check_replicating(seen, table.replication.warn_seconds, table.replication.error_seconds)
    yield check_retention(deadline, table.retention.error_seconds)
    yield check_lag(lag, table.lag.error_seconds)
    yield replace(check_retention(deadline, table.retention.warn_seconds), is_warning=True)
    yield replace(check_lag(lag, table.lag.warn_seconds), is_warning=True)
