"""The check on a history: how long the next commit that it is to keep can still be read."""

import time

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.audit.retention import Horizon, Then, retention_finding
from mirror_assets.checks.results import check_result, checking
from mirror_assets.config import Config, TableSettings
from mirror_assets.delta.retention import retention_clocks
from mirror_assets.delta.rows import feed_files
from mirror_assets.history.work import HistoryWork
from mirror_assets.mirroring.horizon import some_lost
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
        error = retention_finding(horizon, table.retention.error_seconds, _NAME)
        if not error.passed:
            return check_result(history, error)
        warning = retention_finding(horizon, table.retention.warn_seconds, _NAME)
        return check_result(history, warning, dg.AssetCheckSeverity.WARN)

    return [history_retention]


def history_horizon(work: HistoryWork, now: float) -> Horizon:
    """The horizon at `now`, from both logs and the presence of files.

    A history that has not begun waits for no commit in particular.
    """
    tip, newest = work.source.state(), work.history.newest()
    times = work.source.times(tip)
    waits = newest is not None and newest.last < tip.version
    version = newest.last + 1 if newest is not None and waits else tip.version + 1
    is_there = waits and version >= times.first
    return Horizon(
        uri=work.source.uri,
        version=version,
        waits=waits,
        committed=times.at(version) / 1000 if is_there else None,
        lost=some_lost(work.source, version, feed_files) if is_there else (),
        clocks=retention_clocks(work.source.uri, tip.metadata),
        now=now,
        then=Then.LOST,
    )
