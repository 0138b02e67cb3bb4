"""Runs that mirror commits as they come: how they work and end, what they were started for, and which have died."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path

import dagster as dg
from pydantic import Field

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.landing.run_records import Lease, Process
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_tables import STOP_SECONDS, TABLES_AT_ONCE, TableRuns
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.runs import (
    BATCH_TAG,
    BUSY_WORDS,
    INTERRUPTS,
    PROCESS_TAG,
    Location,
    mirror_of_run,
)
from mirror_assets.orchestration.table_events import EventQueue
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.leases import BatchRunner
from mirror_assets.pipeline.liveness import RunState, has_ended, run_state, this_process
from mirror_assets.pipeline.next_action import pause_left
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.scheduler import Scheduler
from mirror_assets.pipeline.table_watch import PollRounds, TableWatch
from mirror_assets.source.ranges import EVERYTHING
from mirror_assets.telemetry.record import export_heartbeats, export_tables
from mirror_assets.zones import Store

_PACKAGE = Path(__file__).parents[1]
# Credentials and places that mirror.yaml doesn't name.
_VARIABLES = ("AWS_", "AZURE_", "DATABRICKS_", "GOOGLE_", "MIRROR_")
_NEWEST_RUNS = 20
# Dagster has to start a run, and the run has to write its heartbeat, within this time.
_START_SECONDS = 600.0
# A run that ends waits this long for running slices, while no other run mirrors. A store that hangs must not keep it.
_END_SECONDS = 900.0
# A run whose hours are over does not end while a slice takes long, because all other tables would wait for it.
_LONGEST_DELAY_SECONDS = 3600.0


class FollowSources(dg.Config):
    """How a run mirrors commits as they come.

    It polls every `every_seconds`, for `minutes` (None: until it is interrupted; 0: until nothing is pending). The
    sensor sets `batch`, `code`, and the tables that are `pending`: the run begins with those.
    """

    every_seconds: float
    pending: list[str] = Field(default_factory=list)
    minutes: float | None = None
    batch: int | None = None
    code: str = ""

    @property
    def is_resident(self) -> bool:
        """Whether the run continues when nothing is pending."""
        return self.minutes is None or self.minutes > 0


def follow_tables(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    following: FollowSources,
    queue: EventQueue,
) -> list[TableReport]:
    """Mirror commits of the tables as they come; return a report of each table that had work.

    An interrupt ends it after the running slices.
    """
    batch = None
    if following.batch is not None:
        tags = {PROCESS_TAG: this_process().model_dump_json()}
        queue.record(partial(context.instance.add_run_tags, context.run_id, tags))
        mirror, names = mirror_of_run(context, assets.name), tuple(str(table.name) for table in tables)
        batch = BatchRunner(project.store, mirror, following.batch, context.run_id, following.code, names)
    with batch.running() if batch is not None else nullcontext():
        if batch is not None and (reason := batch.reason_to_end()):
            queue.info(f"the run ends: {reason}")
            return []
        runs = TableRuns(context, assets, project, EVERYTHING, queue, is_following=True)
        try:
            _follow(runs, [project.table(table) for table in tables], following, batch, queue)
        finally:
            queue.close()
    return list(runs.reports.values())


def _follow(
    runs: TableRuns,
    contexts: Sequence[TableContext],
    following: FollowSources,
    batch: BatchRunner | None,
    queue: EventQueue,
) -> None:
    scheduler, began = Scheduler(TABLES_AT_ONCE), time.monotonic()
    export_tables(str(context.name) for context in contexts)
    export_heartbeats(runs.heartbeats)
    runs.watch = TableWatch(
        contexts, {context.name: runs.boundaries.of(context.name) for context in contexts}, following.is_resident
    )
    rounds = PollRounds(runs.watch, following.every_seconds, polls_after_work=not following.is_resident)
    for context in contexts:
        if str(context.name) in following.pending:
            scheduler.add(context.name, runs.work(context))
    if following.is_resident:
        runs.start_spark()
    patience = _END_SECONDS
    try:
        _mirror_until(
            lambda: _reason_to_end(following, batch, scheduler, began, is_idle=rounds.is_idle(scheduler.tables)),
            runs,
            rounds,
            scheduler,
            queue,
        )
    except INTERRUPTS:
        runs.is_stopping, patience = True, STOP_SECONDS
        if following.minutes is not None:
            raise
        queue.info("interrupted: waiting for the running slices")
    finally:
        scheduler.stop(patience)
        export_heartbeats(None)
        if scheduler.tables:
            queue.warning(f"{len(scheduler.tables)} slices did not end in time; the next run stages them again")
    if runs.lost_spark:
        raise dg.Failure("Spark's JVM has ended, and this process can't start another. The next run continues.")


def _mirror_until(
    reason_to_end: Callable[[], str | None],
    runs: TableRuns,
    rounds: PollRounds,
    scheduler: Scheduler,
    queue: EventQueue,
) -> None:
    """Poll the tables and give turns to those with work, until there is a reason to end, or Spark's JVM has ended."""
    while not runs.lost_spark:
        queue.flush()
        if not queue.is_waiting and (reason := reason_to_end()):
            queue.info(f"the run ends: {reason}")
            return
        for poll in rounds.polls(scheduler.tables):
            runs.follow_poll(poll, scheduler)
        if scheduler.tables:
            scheduler.run_turns()


def _reason_to_end(
    following: FollowSources, batch: BatchRunner | None, scheduler: Scheduler, began: float, *, is_idle: bool
) -> str | None:
    """Return why the run may end, which began at that time of `time.monotonic`; None if it continues."""
    if batch is not None and (reason := batch.reason_to_end()):
        return reason
    if following.minutes is None:
        return None
    if not following.is_resident:
        return "nothing is pending" if is_idle else None
    late = time.monotonic() - began - following.minutes * 60
    is_over = late >= 0 and (not scheduler.has_long_turns or late >= _LONGEST_DELAY_SECONDS)
    return f"its {following.minutes:.0f} minutes are over" if is_over else None


def code_mark(assets: MirrorAssets) -> str:
    """Return a digest of the settings, the tables and their assets, the code, and the environment of credentials.

    A run ends when it was started for others, and not at each reload of the same.
    """
    settings = assets.config.model_dump_json()
    digest = hashlib.sha256(settings.encode())
    for table in assets.config.all_tables():
        for kind in assets.kinds(table):
            digest.update(assets.key(kind, table.name).to_string().encode())
    for name, value in sorted(os.environ.items()):  # credentials, by their prefix or because a setting is their name
        if name.startswith(_VARIABLES) or f'"{name}"' in settings:
            digest.update(f"{name}={value}".encode())
    own = {feature.module for feature in assets.config.own_features}
    digest.update(_code(tuple(sorted(own))).encode())
    return digest.hexdigest()[:32]


@cache
def _code(own: tuple[str, ...]) -> str:
    """Return a digest of the files of the package and of the project's own features, when this process first asked."""
    digest = hashlib.sha256()
    files = (sys.modules[name].__file__ for name in own if name in sys.modules)
    for file in (*sorted(_PACKAGE.rglob("*.py")), *(Path(file) for file in files if file)):
        about = file.stat()
        digest.update(f"{file} {about.st_mtime_ns} {about.st_size}".encode())
    return digest.hexdigest()


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
        since = lease.since_ms / 1000 if lease else 0.0
        newer = [one for one in self._records if one.create_timestamp.timestamp() > since]
        failed = [one.end_time or 0.0 for one in newer if one.dagster_run.status is dg.DagsterRunStatus.FAILURE]
        return pause_left(len(failed) - 1, max(failed, default=0.0), now)


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
