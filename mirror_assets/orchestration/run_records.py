"""Finds this code location's runs among Dagster's: those of a batch of tables, and rebuilds of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import dagster as dg

from mirror_assets.landing.lease import Lease, Process
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import BATCH_TAG
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.run_tags import PROCESS_TAG, Location
from mirror_assets.pipeline.backoff import pause_left
from mirror_assets.pipeline.liveness import has_ended, is_gone

_NEWEST_RUNS = 20
# A run takes over from another when its Spark has started; the first time, it downloads JARs.
_START_SECONDS = 300.0
# A replaced run ends after its slices. If its process is on another machine, it may hold a table's lease this long.
_REPLACED_SECONDS = 900.0
BUSY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


class BatchRuns:
    """The newest runs in a code location that were requested for a batch, newest first."""

    def __init__(self, instance: dg.DagsterInstance, location: Location, job: str, batch: int) -> None:
        """Read the records of the job."""
        self._instance = instance
        filters = dg.RunsFilter(job_name=job, tags={**location.tags, BATCH_TAG: str(batch)})
        self._records = list(instance.get_run_records(filters, limit=_NEWEST_RUNS))

    def coming(self, lease: Lease | None, now: float) -> dg.DagsterRun | None:
        """Return a run that was requested and has yet to take over from the lease's, or None."""
        for record in self._newer(lease):
            run = record.dagster_run
            is_late = record.start_time is not None and now - record.start_time > _START_SECONDS
            if run.status in BUSY and (not is_late or _has_ended(run) is False):
                return run
        return None

    def pause(self, lease: Lease | None, now: float) -> float:
        """Return the seconds to wait because runs have failed, one after another, before they could take over."""
        failure = dg.DagsterRunStatus.FAILURE
        failed = [one.end_time or 0.0 for one in self._newer(lease) if one.dagster_run.status is failure]
        return pause_left(len(failed) - 1, max(failed, default=0.0), now)

    def end_dead(self, lease: Lease | None, now: float, works: Callable[[str], bool]) -> None:
        """Record runs as failed whose process has ended, though Dagster takes them for running: they block the queue.

        `works` returns whether a run holds the lease of a table.
        """
        for record in self._records:
            run = record.dagster_run
            if run.status is dg.DagsterRunStatus.STARTED and _is_dead(record, lease, now, works):
                self._instance.report_run_failed(run, "its process was killed")

    def _newer(self, lease: Lease | None) -> Iterable[dg.RunRecord]:
        since = lease.since_ms / 1000 if lease else 0.0
        return [record for record in self._records if record.create_timestamp.timestamp() > since]


def busy_rebuild(
    instance: dg.DagsterInstance, location: Location, assets: MirrorAssets, table: TableName
) -> dg.DagsterRun | None:
    """Return a queued or running run that rebuilds the table in the code location, or None."""
    job, op = assets.full_name(REBUILD), assets.full_name(REBUILD_OP)
    runs = instance.get_runs(dg.RunsFilter(job_name=job, statuses=BUSY, tags=location.tags), limit=_NEWEST_RUNS)
    return next((run for run in runs if _table_to_rebuild(run.run_config, op) == str(table)), None)


def _has_ended(run: dg.DagsterRun) -> bool | None:
    """Return whether the run's process has ended; None if it is on another machine."""
    process = run.tags.get(PROCESS_TAG)
    return has_ended(Process.model_validate_json(process)) if process else None


def _is_dead(record: dg.RunRecord, lease: Lease | None, now: float, works: Callable[[str], bool]) -> bool:
    """Return whether the run's process has ended, by the process table or by leases."""
    run = record.dagster_run
    ended = _has_ended(run)
    if ended is not None or lease is None:
        return bool(ended)
    if run.run_id == lease.run:
        return is_gone(lease)
    since = lease.since_ms / 1000
    is_replaced = record.create_timestamp.timestamp() < since < now - _REPLACED_SECONDS
    return is_replaced and not works(run.run_id)


def _table_to_rebuild(run_config: object, op: str) -> object:
    """Return the table that the run configuration of a rebuild names, or None."""
    for step in ("ops", op, "config", "table"):
        if not isinstance(run_config, dict):
            return None
        run_config = run_config.get(step)
    return run_config
