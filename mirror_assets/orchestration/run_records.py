"""Finds runs among Dagster's run records: those of a batch of tables, and rebuilds of one table."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from mirror_assets.landing.names import TableName
from mirror_assets.landing.runner import Runner
from mirror_assets.orchestration.asset_names import BATCH_TAG
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP
from mirror_assets.pipeline.backoff import pause_left
from mirror_assets.pipeline.batch_runner import is_alive

_RUNS_LOOKED_AT = 20
# A run takes over from another when its Spark has started.
_START_SECONDS = 300.0
# A run that was replaced ends behind its slices, within minutes.
_REPLACED_SECONDS = 900.0
BUSY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class BatchRuns:
    """The newest runs that were requested for a batch, newest first."""

    def __init__(self, instance: dg.DagsterInstance, batch: int) -> None:
        """Read their records."""
        self._instance = instance
        filters = dg.RunsFilter(tags={BATCH_TAG: str(batch)})
        self._records = list(instance.get_run_records(filters, limit=_RUNS_LOOKED_AT))

    def coming(self, runner: Runner | None, now: float) -> dg.DagsterRun | None:
        """Return a run that was requested and has yet to take over from `runner`, or None."""
        for record in self._newer(runner):
            started = record.start_time is not None and now - record.start_time > _START_SECONDS
            if record.dagster_run.status in BUSY and not started:
                return record.dagster_run
        return None

    def pause(self, runner: Runner | None, now: float) -> float:
        """Return the seconds to wait because runs have failed, one after another, before they could take over."""
        failed = [record.end_time or 0.0 for record in self._newer(runner) if _has_failed(record)]
        return pause_left(len(failed) - 1, max(failed, default=0.0), now)

    def end_dead(self, runner: Runner | None, now: float) -> None:
        """Record as failed what Dagster takes for running, though its process has ended: it would block the queue."""
        if runner is None:
            return
        for record in self._records:
            run = record.dagster_run
            if run.status is dg.DagsterRunStatus.STARTED and _is_dead(record, runner, now):
                self._instance.report_run_failed(run, "its process has ended without a word: it was killed")

    def _newer(self, runner: Runner | None) -> Iterable[dg.RunRecord]:
        since = runner.since_ms / 1000 if runner else 0.0
        return [record for record in self._records if record.create_timestamp.timestamp() > since]


def busy_rebuild(instance: dg.DagsterInstance, table: TableName) -> dg.DagsterRun | None:
    """Return a queued or running rebuild of the table, started by a person; None if there is none."""
    runs = instance.get_runs(dg.RunsFilter(job_name=REBUILD, statuses=BUSY), limit=_RUNS_LOOKED_AT)
    return next((run for run in runs if _table_to_rebuild(run.run_config) == str(table)), None)


def _is_dead(record: dg.RunRecord, runner: Runner, now: float) -> bool:
    """Return whether the run was the runner and has died, or was replaced so long ago that it must have ended."""
    if record.dagster_run.run_id == runner.run:
        return not is_alive(runner)
    since = runner.since_ms / 1000
    return record.create_timestamp.timestamp() < since < now - _REPLACED_SECONDS


def _has_failed(record: dg.RunRecord) -> bool:
    return record.dagster_run.status is dg.DagsterRunStatus.FAILURE


def _table_to_rebuild(run_config: object) -> object:
    """Return the table that the run configuration of a rebuild names, or None."""
    for step in ("ops", REBUILD_OP, "config", "table"):
        if not isinstance(run_config, dict):
            return None
        run_config = run_config.get(step)
    return run_config
