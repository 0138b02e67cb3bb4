"""The job `delete_old_runs`: deletes this code location's old runs, their events, logs and partitions from Dagster.

A run of `checks` goes after three days.
"""

import time
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import dagster as dg

from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.dagster_internals import (
    REPOSITORY_LABEL_TAG,
    RemoteRepositoryOrigin,
    SqliteEventLogStorage,
)
from mirror_assets.orchestration.fixed_config import fixed_config
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import delete_keys

DELETE_OLD_RUNS = "delete_old_runs"
_DAY_SECONDS = 86_400.0
# The schedule runs this job every few minutes, and what its checks have found is kept without the run.
_CHECKS_SECONDS = 3 * _DAY_SECONDS
_PAGE = 200
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def old_runs_jobs(assets: MirrorAssets) -> list[dg.JobDefinition]:
    """Return the job, unless runs are retained permanently."""
    days = assets.config.automation.keep_runs_days
    if days is None:
        return []

    @dg.op(
        name=assets.full_name("delete_runs"),
        description=f"Delete runs of more than {days} days ago with their events, logs and partitions.",
    )
    def delete_runs(context: dg.OpExecutionContext) -> None:
        origin = context.run.remote_job_origin
        if origin is None:
            raise dg.Failure("Runs are selected by their code location, and this run has none. Launch it in Dagster.")
        before = time.time() - days * _DAY_SECONDS
        deleted = delete_old_runs(context.instance, assets, origin.repository_origin, before)
        context.log.info(f"{deleted} runs of more than {days} days ago are deleted")

    @dg.job(
        name=assets.full_name(DELETE_OLD_RUNS),
        description=f"Delete what Dagster keeps of runs of more than {days} days ago.",
        **fixed_config(assets),
    )
    def job() -> None:
        delete_runs()

    return [job]


def delete_old_runs(
    instance: dg.DagsterInstance, mirror: MirrorAssets, repository: RemoteRepositoryOrigin, before: float
) -> int:
    """Delete the repository's runs that ended before that time (seconds since 1970); return how many.

    A run that has an asset's newest event is kept: Dagster's pages show the asset's state by it. The partitions of
    slices that a deleted run has landed are deleted, because Dagster would show them as missing.
    """
    zones = {mirror.key(AssetKind.LANDING, name): mirror.partitions_name(name) for name in mirror.config.names}
    assets = mirror.keys(*AssetKind)
    newest = {entry.last_run_id for entry in (one.asset_entry for one in instance.get_asset_records(assets))}
    ended = partial(dg.RunsFilter, statuses=_ENDED, tags={REPOSITORY_LABEL_TAG: repository.get_label()})
    checks_before = max(before, time.time() - _CHECKS_SECONDS)
    old = {
        *instance.get_run_ids(ended(updated_before=_time(before))),
        *instance.get_run_ids(ended(job_name=mirror.full_name(CHECKS), updated_before=_time(checks_before))),
    }
    deleted = old - newest
    for run in deleted:
        for asset, partition in _materialized(instance, run):
            if asset in zones and partition is not None:
                delete_keys(instance, zones[asset], [partition])
        instance.compute_log_manager.delete_logs(prefix=[run])
        instance.delete_run(run)
        storage = instance.event_log_storage
        if isinstance(storage, SqliteEventLogStorage):  # it empties the run's file, and leaves it there
            Path(storage.path_for_shard(run)).unlink(missing_ok=True)
    return len(deleted)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def _materialized(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[dg.AssetKey, str | None]]:
    cursor: str | None = None
    while True:
        page = instance.get_records_for_run(
            run_id, cursor=cursor, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION, limit=_PAGE
        )
        for record in page.records:
            if record.asset_key is not None:
                yield record.asset_key, record.partition_key
        if not page.has_more:
            return
        cursor = page.cursor
