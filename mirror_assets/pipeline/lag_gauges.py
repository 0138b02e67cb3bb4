"""Updates the lag gauges of tables from a poll or a plan, or by reading the source if neither has the answer."""

from __future__ import annotations

import time

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.many_tables import is_silence
from mirror_assets.pipeline.next_action import Action, Rest
from mirror_assets.pipeline.pending import pending_commits, table_lag
from mirror_assets.pipeline.plan import TablePlan
from mirror_assets.telemetry.record import table_gauges

# Minimum seconds between reads of a log that a poll did not read: opening it costs more than a poll.
_READ_SECONDS = 5.0


def note_poll(context: TableContext, action: Action | MirrorError) -> None:
    """Update the gauges from a poll of the table; read source and manifest if the poll does not have the answer.

    If the source can't be read, pending commits remain pending, and a lag of 0 is no longer exported.
    """
    name, gauges = str(context.name), table_gauges()
    if gauges is None:
        return
    if isinstance(action, Rest) and action.mark is not None:
        gauges.set_source(name, action.mark.tip.version, action.mark.tip.version, None)
    elif isinstance(action, MirrorError) and is_silence(action):
        gauges.set_unreadable(name)
    elif time.time() - gauges.progress(name).polled >= _READ_SECONDS:
        try:
            pending, now = pending_commits(context), time.time()
            lag = table_lag(pending, now)
            gauges.set_source(name, lag.tip, pending.covered, now - lag.seconds if pending.waits else None)
        except MirrorError:
            gauges.set_unreadable(name)


def note_plan(table: TableName, plan: TablePlan) -> None:
    """Update the gauges from a plan, unless the poll before it knows more: for a snapshot, or a break at the start."""
    gauges = table_gauges()
    if gauges is None or plan.manifest is None or plan.manifest.loading is not None:
        return
    covered, tip = plan.manifest.covered, plan.state.version
    if plan.slices or tip == covered:
        since = plan.slices[0].first_commit_ms / 1000 if plan.slices else None
        gauges.set_source(str(table), tip, covered, since)


def note_covered(table: TableName, plan: TablePlan, index: int, covered: int) -> None:
    """Update the gauges after the slice at this index of the plan has landed.

    Commits after the last slice have been pending at most since its last commit; the next poll has the exact time.
    """
    gauges, following = table_gauges(), plan.slices[index + 1 :]
    if gauges is None:
        return
    since: float | None = None
    if following:
        since = following[0].first_commit_ms / 1000
    elif plan.state.version > covered:
        since = plan.slices[index].last_commit_ms / 1000
    gauges.set_covered(str(table), covered, since)
