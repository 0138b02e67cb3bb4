"""What Dagster's runs say of a table: which of them are about it alone, and which failed where it is now."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from mirror_assets.assets.names import POSITION_TAG, TABLE_TAG, Kind, asset_key
from mirror_assets.automation.jobs import REBUILD, REBUILD_OP, slices_job_name
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import Position
from mirror_assets.mirroring.due import Crashes

_FAILURES_COUNTED = 10
_RUNS_LOOKED_AT = 100
BUSY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def busy_run(instance: dg.DagsterInstance, table: TableName) -> dg.DagsterRun | None:
    """A run of this table alone that waits or is under way, whoever asked for it.

    A run of many tables tells nothing of one of them: that it works on the table is told by the table's lease.
    """
    asked = instance.get_runs(dg.RunsFilter(tags={TABLE_TAG: str(table)}, statuses=BUSY), limit=1)
    others = asked or instance.get_runs(dg.RunsFilter(statuses=BUSY), limit=_RUNS_LOOKED_AT)
    return next((run for run in others if is_of(run, table)), None)


def is_of(run: dg.DagsterRun, table: TableName) -> bool:
    """Whether the run lands slices of the table, or rebuilds it, by its tag, job, chosen assets or configuration."""
    if run.tags.get(TABLE_TAG) == str(table) or run.job_name == slices_job_name(table):
        return True
    if run.job_name == REBUILD:
        return _rebuilt(run.run_config) == str(table)
    chosen = run.asset_selection or ()
    return any(asset_key(kind, table) in chosen for kind in (Kind.CHANGE_FEED, Kind.LANDING_ZONE))


def crashes(instance: dg.DagsterInstance, table: TableName, position: Position) -> Crashes:
    """The newest runs that failed in a row of those that the sensor asked for at this position of the table."""
    tags = {TABLE_TAG: str(table), POSITION_TAG: str(position)}
    return _failed_in_a_row(
        instance.get_run_records(dg.RunsFilter(tags=tags, statuses=_ENDED), limit=_FAILURES_COUNTED)
    )


def _failed_in_a_row(records: Iterable[dg.RunRecord]) -> Crashes:
    """`records` with the newest first."""
    found = Crashes()
    for record in records:
        if record.dagster_run.status is not dg.DagsterRunStatus.FAILURE:
            break
        found = Crashes(found.count + 1, max(found.ended, record.end_time or 0.0))
    return found


def _rebuilt(run_config: object) -> object:
    """The table that a rebuild's configuration names, wherever it has one."""
    for step in ("ops", REBUILD_OP, "config", "table"):
        if not isinstance(run_config, dict):
            return None
        run_config = run_config.get(step)
    return run_config
