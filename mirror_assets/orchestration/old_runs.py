"""The job `delete_old_runs`: deletes the mirror's old runs, their events, logs and partitions from Dagster.

A run of `checks` goes after three days. Runs of other jobs and assets in the code location stay. So do events that
belong to no run: Dagster can delete them only with the whole history of an asset.
"""

import time
from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from pathlib import Path

import dagster as dg

from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.dagster_internals import (
    IMPLICIT_ASSET_JOB_NAME,
    REPOSITORY_LABEL_TAG,
    RemoteRepositoryOrigin,
    SqliteEventLogStorage,
)
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_status import status_asset
from mirror_assets.orchestration.partitions import delete_keys
from mirror_assets.orchestration.resources import fixed_config
from mirror_assets.orchestration.translator import AssetKind

DELETE_OLD_RUNS = "delete_old_runs"
_DAY_SECONDS = 86_400.0
# The schedule runs this job every few minutes, and what its checks have found is kept without the run.
_CHECKS_SECONDS = 3 * _DAY_SECONDS
_PAGE = 200
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def old_runs_jobs(assets: MirrorAssets, others: Collection[str]) -> list[dg.JobDefinition]:
    """Return the job, unless runs are retained permanently; `others` are the names of all other jobs of the mirror."""
    days = assets.config.automation.keep_runs_days
    if days is None:
        return []

    @dg.op(
        name=assets.full_name("delete_runs"),
        description=f"Delete the mirror's runs of more than {days} days ago with their events, logs and partitions.",
    )
    def delete_runs(context: dg.OpExecutionContext) -> None:
        origin = context.run.remote_job_origin
        if origin is None:
            raise dg.Failure("Runs are selected by their code location, and this run has none. Launch it in Dagster.")
        before = time.time() - days * _DAY_SECONDS
        jobs = {*others, context.job_name}
        deleted = delete_old_runs(context.instance, assets, jobs, origin.repository_origin, before)
        context.log.info(f"{deleted} runs of more than {days} days ago are deleted")

    @dg.job(
        name=assets.full_name(DELETE_OLD_RUNS),
        description=f"Delete what Dagster keeps of the mirror's runs of more than {days} days ago.",
        **fixed_config(assets),
    )
    def job() -> None:
        delete_runs()

    return [job]


def delete_old_runs(
    instance: dg.DagsterInstance,
    mirror: MirrorAssets,
    jobs: Collection[str],
    repository: RemoteRepositoryOrigin,
    before: float,
) -> int:
    """Delete the mirror's runs in the repository that ended before that time (seconds since 1970); return how many.

    These are runs of its `jobs`, and runs of assets that select no other asset than the mirror's. A run that has an
    asset's newest event is kept: Dagster's pages show the asset's state by it. The partitions of slices that a deleted
    run has landed are deleted, because Dagster would show them as missing.
    """
    zones = {mirror.key(AssetKind.LANDING, name): mirror.partitions_name(name) for name in mirror.config.names}
    assets = [*mirror.own_keys(), status_asset(mirror).key]
    newest = {entry.last_run_id for entry in (one.asset_entry for one in instance.get_asset_records(assets))}
    deleted = _old_runs(instance, mirror, jobs, repository, before) - newest
    for run in deleted:
        for asset, partition in _materialized(instance, run):
            if asset in zones and partition is not None:
                delete_keys(instance, zones[asset], [partition])
        instance.compute_log_manager.delete_logs(prefix=[run])
        instance.delete_run(run)
        storage = instance.event_log_storage
        if isinstance(storage, SqliteEventLogStorage):  # it empties the run's file, and leaves it there
            file = Path(storage.path_for_shard(run))
            for ending in ("", "-wal", "-shm", "-journal"):  # its journals, too, if a process has it open
                file.with_name(file.name + ending).unlink(missing_ok=True)
    return len(deleted)


def _old_runs(
    instance: dg.DagsterInstance,
    mirror: MirrorAssets,
    jobs: Collection[str],
    repository: RemoteRepositoryOrigin,
    before: float,
) -> set[str]:
    """Return the ids of the mirror's runs in the repository that ended before that time."""

    def ended(job: str, since: float) -> dg.RunsFilter:
        at, tags = datetime.fromtimestamp(since, timezone.utc), {REPOSITORY_LABEL_TAG: repository.get_label()}
        return dg.RunsFilter(job_name=job, statuses=_ENDED, tags=tags, updated_before=at)

    found = set[str]()
    for job in jobs:
        since = max(before, time.time() - _CHECKS_SECONDS) if job == mirror.full_name(CHECKS) else before
        found |= set(instance.get_run_ids(ended(job, since)))
    own, cursor = mirror.own_keys(), None
    while page := instance.get_runs(ended(IMPLICIT_ASSET_JOB_NAME, before), cursor=cursor, limit=_PAGE):
        for run in page:  # it may have materialized or checked assets of others as well
            selected = {*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())}
            found |= {run.run_id} if selected and selected <= own else set()
        cursor = page[-1].run_id
    return found


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
