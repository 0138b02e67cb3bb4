"""Tells the metrics how far tables are behind: from what a look or a plan knows anyway, else by asking the source."""

from __future__ import annotations

import time

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.next_action import Action, Rest
from mirror_assets.pipeline.pending import pending_commits, table_lag
from mirror_assets.pipeline.plan import TablePlan
from mirror_assets.pipeline.silent_stores import is_silence
from mirror_assets.telemetry.record import covers, is_on, looked, looked_seconds_ago, unseen

# A table that is stuck, or works elsewhere, is asked this often at most: to open its log costs more than a look.
_ASKED_SECONDS = 5.0


def note_look(context: TableContext, action: Action | MirrorError) -> None:
    """Tell what a look at the table has found; ask source and manifest if the look does not say it.

    Of a source that can't be asked, what is known to wait goes on waiting; that nothing waits is not said any more.
    """
    name = str(context.name)
    ago = looked_seconds_ago(name)
    if ago is None:
        return
    if isinstance(action, Rest) and action.mark is not None:
        looked(name, action.mark.tip.version, action.mark.tip.version, None)
    elif isinstance(action, MirrorError) and is_silence(action):
        unseen(name)
    elif ago >= _ASKED_SECONDS:
        try:
            _ask(context)
        except MirrorError:
            unseen(name)


def _ask(context: TableContext) -> None:
    pending, now = pending_commits(context), time.time()
    lag = table_lag(pending, now)
    looked(str(context.name), lag.tip, pending.covered, now - lag.seconds if pending.waits else None)


def note_plan(table: TableName, plan: TablePlan) -> None:
    """Tell what a plan has found. Of a snapshot, or a break without a slice before it, the look before tells more."""
    if not is_on() or plan.manifest is None or plan.manifest.loading is not None:
        return
    covered, tip = plan.manifest.covered, plan.state.version
    if plan.slices or tip == covered:
        looked(str(table), tip, covered, plan.slices[0].first_commit_ms / 1000 if plan.slices else None)


def note_covered(table: TableName, plan: TablePlan, index: int, covered: int) -> None:
    """Tell that the slice at the index of the plan has landed; the one behind it waits now.

    Commits behind the last slice have waited since its last commit at most; the next look tells it exactly.
    """
    following = plan.slices[index + 1 :]
    if following:
        covers(str(table), covered, following[0].first_commit_ms / 1000)
    else:
        covers(str(table), covered, plan.slices[index].last_commit_ms / 1000 if plan.state.version > covered else None)
