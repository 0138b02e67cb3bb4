"""The check on a history: how long the next commit that it is to keep can still be read."""

import time

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.audit.retention import Horizon, Then
from mirror_assets.checks.results import checking, retention_result
from mirror_assets.config import Config, TableSettings
from mirror_assets.delta.rows import feed_files
from mirror_assets.history.context import HistoryContext
from mirror_assets.mirroring.horizon import horizon_at
from mirror_assets.resources.catalog import planning_history
from mirror_assets.resources.sources import SourceTables

_NAME = "history_retention"


def history_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """The check history_retention of the table: a WARN, then an ERROR, before a commit can be gone that is not kept."""
    history = asset_key(Kind.HISTORY, table.name)

    @dg.asset_check(asset=history, name=_NAME, description="How long the next commit to keep can still be read.")
    def history_retention(sources: SourceTables) -> dg.AssetCheckResult:
        with checking():
            horizon = history_horizon(planning_history(config, table, sources), time.time())
        return retention_result(history, horizon, table.retention, _NAME)

    return [history_retention]


def history_horizon(work: HistoryContext, now: float) -> Horizon:
    """The horizon at `now`, from both logs and the presence of files.

    A history that has not begun waits for no commit in particular.
    """
    tip, newest = work.source.state(), work.history.newest()
    times, next_read = work.source.times(tip), newest.last + 1 if newest else None
    return horizon_at(work.source, tip, times, next_read, feed_files, Then.LOST, now)
