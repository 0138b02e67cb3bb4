"""Find a table's runs among Dagster's run records, and record the asset check not_held."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import Progress
from mirror_assets.orchestration.asset_names import PROGRESS_TAG, TABLE_TAG, Kind, asset_key
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP, slices_job_name
from mirror_assets.pipeline.next_action import NOT_HELD, Crashes

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
    """Return a queued or running run of this table, started by the sensor or by a person; None if there is none.

    Runs of several tables don't count: the table's lease shows whether one of them works on this table now.
    """
    requested = instance.get_runs(dg.RunsFilter(tags={TABLE_TAG: str(table)}, statuses=BUSY), limit=1)
    others = requested or instance.get_runs(dg.RunsFilter(statuses=BUSY), limit=_RUNS_LOOKED_AT)
    return next((run for run in others if is_of(run, table)), None)


def is_of(run: dg.DagsterRun, table: TableName) -> bool:
    """Return whether the run mirrors or rebuilds the table, by its tag, job, asset selection or run configuration."""
    if run.tags.get(TABLE_TAG) == str(table) or run.job_name == slices_job_name(table):
        return True
    if run.job_name == REBUILD:
        return _table_to_rebuild(run.run_config) == str(table)
    selected = run.asset_selection or ()
    return any(asset_key(kind, table) in selected for kind in (Kind.CHANGE_FEED, Kind.LANDING_ZONE))


def crashes(instance: dg.DagsterInstance, table: TableName, progress: Progress) -> Crashes:
    """Count the sensor's runs at this position of the table that failed in a row, up to the newest run."""
    tags = {TABLE_TAG: str(table), PROGRESS_TAG: str(progress)}
    return _consecutive_failures(
        instance.get_run_records(dg.RunsFilter(tags=tags, statuses=_ENDED), limit=_FAILURES_COUNTED)
    )


def record_held(instance: dg.DagsterInstance, table: TableName, why: str | None) -> None:
    """Record the check not_held as failed with the reason, or as passed; an unchanged result is not recorded again."""
    zone = asset_key(Kind.LANDING_ZONE, table)
    latest = _latest(instance, dg.AssetCheckKey(zone, NOT_HELD))
    shown = latest is None or latest.passed
    if shown == (why is None) and (latest is None or (latest.description or None) == why):
        return
    evaluation = dg.AssetCheckEvaluation(zone, NOT_HELD, passed=why is None, blocking=True, description=why)
    instance.report_runless_asset_event(evaluation)


def _table_to_rebuild(run_config: object) -> object:
    """Return the table that the run configuration of a rebuild names, or None."""
    for step in ("ops", REBUILD_OP, "config", "table"):
        if not isinstance(run_config, dict):
            return None
        run_config = run_config.get(step)
    return run_config


def _consecutive_failures(records: Iterable[dg.RunRecord]) -> Crashes:
    """Count the failures before the first other result; `records` come newest first."""
    found = Crashes()
    for record in records:
        if record.dagster_run.status is not dg.DagsterRunStatus.FAILURE:
            break
        found = Crashes(found.count + 1, max(found.ended, record.end_time or 0.0))
    return found


def _latest(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
    record = instance.get_latest_asset_check_evaluation_record(check)
    event = record.event.dagster_event if record is not None and record.event is not None else None
    evaluated = event is not None and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return event.asset_check_evaluation_data if event is not None and evaluated else None
