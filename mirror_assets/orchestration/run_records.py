"""Finds this code location's runs among Dagster's: those of a batch of tables, and rebuilds of one table."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from mirror_assets.landing.lease import Lease, Process
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import BATCH_TAG
from mirror_assets.orchestration.dagster_internals import PARTITION_NAME_TAG
from mirror_assets.orchestration.jobs import REBUILD
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.runs import BUSY, BUSY_WORDS, PROCESS_TAG, Location
from mirror_assets.pipeline.backoff import pause_left
from mirror_assets.pipeline.liveness import RunState, has_ended, run_state
from mirror_assets.storage import Store

_NEWEST_RUNS = 20
# Dagster has to start a run, and the run has to write its heartbeat, within this time.
_START_SECONDS = 600.0


class BatchRuns:
    """The newest runs in a code location that were requested for a batch, newest first."""

    def __init__(self, instance: dg.DagsterInstance, location: Location, job: str, batch: int) -> None:
        """Read the records of the job."""
        self._instance = instance
        filters = dg.RunsFilter(job_name=job, tags={**location.tags, BATCH_TAG: str(batch)})
        self._records = list(instance.get_run_records(filters, limit=_NEWEST_RUNS))

    def end_dead(self, store: Store, now: float) -> list[str]:
        """Record dead runs as failed, because they block Dagster's queue and the next run; return a message of each.

        Raises what the store raises.
        """
        ended = list[str]()
        for index, record in enumerate(self._records):
            run, why = record.dagster_run, _death(record, store, now)
            if why is None:
                continue
            if run.status is dg.DagsterRunStatus.CANCELING:
                self._instance.report_run_canceled(run, why)
            else:
                self._instance.report_run_failed(run, why)
            ended.append(f"run {run.run_id}: {why}")
            (self._records[index],) = self._instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))
        return ended

    @property
    def active(self) -> str | None:
        """Return that a run is queued, starting or running; None if none is."""
        runs = (record.dagster_run for record in self._records)
        return next((f"run {run.run_id} {BUSY_WORDS[run.status]}" for run in runs if run.status in BUSY_WORDS), None)

    def pause(self, lease: Lease | None, now: float) -> float:
        """Return the seconds to wait because runs have failed, one after another, before they held the lease."""
        failure = dg.DagsterRunStatus.FAILURE
        failed = [one.end_time or 0.0 for one in self._newer(lease) if one.dagster_run.status is failure]
        return pause_left(len(failed) - 1, max(failed, default=0.0), now)

    def _newer(self, lease: Lease | None) -> Iterable[dg.RunRecord]:
        since = lease.since_ms / 1000 if lease else 0.0
        return [record for record in self._records if record.create_timestamp.timestamp() > since]


def busy_rebuild(
    instance: dg.DagsterInstance, location: Location, assets: MirrorAssets, table: TableName
) -> dg.DagsterRun | None:
    """Return a queued or running run that rebuilds the table in the code location, or None."""
    tags = {**location.tags, PARTITION_NAME_TAG: str(table)}
    runs = instance.get_runs(dg.RunsFilter(job_name=assets.full_name(REBUILD), statuses=BUSY, tags=tags), limit=1)
    return next(iter(runs), None)


def _death(record: dg.RunRecord, store: Store, now: float) -> str | None:
    """Return how the run died, though Dagster takes it for starting or running; None if it lives, or has ended.

    A queued run lives. On another machine, a run lives as long as its heartbeat changes.
    """
    run, since = record.dagster_run, record.update_timestamp.timestamp()
    is_late = now - since > _START_SECONDS
    if run.status in (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING):
        return f"it was not started within {_START_SECONDS / 60:.0f} minutes" if is_late else None
    if run.status not in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING):
        return None
    tag = run.tags.get(PROCESS_TAG)
    process = Process.model_validate_json(tag) if tag else None
    state = run_state(store, run.run_id, process, writes=True)
    if state is RunState.KILLED:
        return "its process was killed"
    if state is RunState.RELEASED and is_late and (process is None or has_ended(process) is None):
        return f"it has had no heartbeat for {_START_SECONDS / 60:.0f} minutes"
    return None
