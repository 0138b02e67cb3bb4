"""The asset check of histories: how long the next commit can still be read."""

from __future__ import annotations

import time
from functools import partial

from mirror_assets.features.history import HISTORY
from mirror_assets.features.history.history_log import HistoryContext
from mirror_assets.features.history.history_settings import HistoryTable
from mirror_assets.features.history.with_dagster.opening import open_history
from mirror_assets.orchestration.asset_check import KEEP_FILES, Check, CheckedTable, by_limits
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.lag import deadline_at
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.source.commits import feed_files
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.timeliness import ReadDeadline, check_retention

HISTORY_RETENTION = "history_retention"
_LOST = "its rows are lost to the history"


def _history_retention(checked: CheckedTable) -> CheckResult:
    table = checked.table
    context = open_history(checked.composed.config, table, checked.composed.log(table.name), no_spark)
    deadline = history_deadline(context, time.time())
    return by_limits(partial(check_retention, deadline, check=HISTORY_RETENTION), table.retention)


def history_deadline(context: HistoryContext, now: float) -> ReadDeadline:
    """Return until when the history can read its next commit, at `now` (seconds since 1970).

    Reads both logs and lists the files that the commit needs. A history that has not begun has no next commit.
    """
    tip, newest = context.source.state(), context.history.newest()
    times, next_read = context.source.times(tip), newest.last + 1 if newest else None
    return deadline_at(context.source, tip, times, next_read, feed_files, _LOST, now)


RETENTION_CHECK = Check(
    HISTORY_RETENTION,
    AssetKind(HISTORY),
    "How long the next commit that the history appends can still be read.",
    _history_retention,
    next_step=KEEP_FILES,
    applies=lambda _, table: HistoryTable.of(table).keeps_history,
)
