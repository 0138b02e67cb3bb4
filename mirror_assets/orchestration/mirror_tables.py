"""Mirrors many tables in one run, round-robin, on one Spark context; a failing table stops only itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import dagster as dg
from pydantic import Field

from mirror_assets.composition import Project
from mirror_assets.config import TableSettings
from mirror_assets.encode.session import spark_has_ended
from mirror_assets.errors import MirrorError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.check_steps import landing_evaluations
from mirror_assets.orchestration.materialize import INTERRUPTS
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import registered_boundaries
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.run_tags import COMMAND_TAG, mirror_name, tag_process
from mirror_assets.orchestration.table_events import TableEvents
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.batch_runner import BatchRunner
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed, TableBusy, unexpected
from mirror_assets.pipeline.rebuild import mirror_wait
from mirror_assets.pipeline.run import RunEvents, mirror_table
from mirror_assets.pipeline.scheduler import Scheduler, TableWork, follow
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.pipeline.table_watch import TableWatch
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.record import export_heartbeats, export_tables

_TABLES_AT_ONCE = 4
# Dagster ends a run that was canceled after three minutes; what a slice has begun is staged again by the next run.
_STOP_SECONDS = 150.0
# A run whose time is over waits this long for its replacement.
_REPLACED_WITHIN_SECONDS = 120.0


class FollowSources(dg.Config):
    """How a run mirrors commits as they come.

    It polls every `every_seconds`, for at least `minutes` (None: until it is interrupted), then until nothing is
    pending. The sensor sets `batch`, `code`, and the tables that are `pending`: the run begins with those, replaces the
    batch's run before it, and ends when the next one replaces it.
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


class _TableRuns:
    """The work on tables in one run, and a report of each.

    A command that mirrors until nothing is left returns an exit code. A setting that is wrong on its machine, such as
    missing credentials, is not recorded as a failure of the table.
    """

    def __init__(
        self,
        context: dg.OpExecutionContext,
        assets: MirrorAssets,
        project: Project,
        requested: Range,
        following: FollowSources | None,
    ) -> None:
        """Prepare the work; a run that is `following` polls the tables, so it plans each only once per poll."""
        self._context, self._assets, self._project, self._requested = context, assets, project, requested
        self._plan_again = following is None
        self._is_command = following is None and COMMAND_TAG in context.run.tags
        self._events = TableEvents(context, assets, is_resident=following is not None and following.is_resident)
        origin = context.run.remote_job_origin
        self.states = TableStates(context.instance, assets, origin.repository_origin if origin else None)
        self.reports: dict[TableName, TableReport] = {}
        self.lost_spark = False
        self.is_stopping = False
        self._checked: set[TableName] = set()

    def work(self, table: TableContext, rebuild_because: str | None = None) -> TableWork:
        """Mirror the table under its lease, one slice per turn; skip it if another run has the lease."""
        self.reports.setdefault(table.name, TableReport(str(table.name)))
        try:
            with leased(table, self._context.run_id):
                yield from self._slices(table, rebuild_because)
        except TableBusy as busy:
            self._context.log.info(busy.what)
            self.reports[table.name] = self.reports[table.name].left_to(busy)
        except MirrorError as error:
            self._context.log.error(str(error))  # noqa: TRY400 the message says what to do; a traceback adds nothing
            self._fail(table, error)
        except Exception as error:
            self._context.log.exception(f"{table.name} failed")
            self._fail(table, unexpected(str(table.name), error))

    def _slices(self, table: TableContext, rebuild_because: str | None) -> TableWork:
        name, instance, log = table.name, self._context.instance, self._context.log

        def rebuilt(published: Published) -> None:
            self.reports[name] = self.reports[name].with_rebuild(published)
            self._events.rebuilt(table, published)

        boundaries = registered_boundaries(instance, self._assets, name)
        events = RunEvents(log.info, rebuilt, partial(self._events.planned, name), boundaries)
        slices = mirror_table(
            table,
            mirror_wait(self._project.mirror(), name),
            events,
            self._requested,
            rebuild_because=rebuild_because,
            plan_again=self._plan_again,
        )
        for processed in slices:
            self._events.landed(table, processed)
            self.reports[name] = self.reports[name].with_slice(processed)
            self.states.landed(name)
            yield None
            # In the table's next turn, when the others have had theirs: to record ten results takes Dagster longer than
            # a small slice takes to land.
            self._events.checked(table, processed)
            if name not in self._checked:
                # For Dagster, these hold for all that this run materializes of the table.
                self._checked.add(name)
                self._events.log(
                    list(landing_evaluations(instance, self._assets, self._project, table.table, log.warning))
                )

    def _fail(self, table: TableContext, error: MirrorError) -> None:
        self.reports[table.name] = self.reports[table.name].failed(error)
        self.lost_spark = self.lost_spark or spark_has_ended()
        try:
            self._record_failure(table, error)
        except Exception:  # Dagster's database may be unreachable: the report and other tables don't depend on it
            self._context.log.exception(f"the failure of {table.name} could not be recorded")

    def _record_failure(self, table: TableContext, error: MirrorError) -> None:
        if isinstance(error, ChecksFailed):
            self._events.refused(table, error)
        # A range that can't be mirrored is not a failure of the table, and neither is a Spark that stops with the run.
        if self._requested.is_everything and not self.is_stopping:
            if not (self._is_command and isinstance(error, SettingError)):
                note_failure(table, error, self._context.log.warning)
            self.states.failed(table.name, error)


def mirror_tables(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    requested: Range = EVERYTHING,
) -> list[TableReport]:
    """Mirror the tables until nothing is left; return a report of each, in order. Errors are in the reports."""
    runs, scheduler = _TableRuns(context, assets, project, requested, None), Scheduler(_TABLES_AT_ONCE)
    for table in tables:
        scheduler.add(table.name, runs.work(project.table(table)))
    try:
        scheduler.finish()
    except INTERRUPTS:
        runs.is_stopping = True
        raise
    finally:
        scheduler.stop(_STOP_SECONDS)
    return [runs.reports[table.name] for table in tables]


def follow_tables(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    following: FollowSources,
) -> list[TableReport]:
    """Mirror commits of the tables as they come; return a report of each table that had work.

    An interrupt ends it after the running slices.
    """
    batch = (
        None
        if following.batch is None
        else _batch_runner(context, assets, project, tables, following.batch, following.code)
    )
    runs, scheduler = _TableRuns(context, assets, project, EVERYTHING, following), Scheduler(_TABLES_AT_ONCE)
    contexts = [project.table(table) for table in tables]
    export_tables(str(table.name) for table in tables)
    watch = TableWatch(contexts, partial(registered_boundaries, context.instance, assets), following.is_resident)
    for table_context in contexts:
        if str(table_context.name) in following.pending:
            scheduler.add(table_context.name, runs.work(table_context))
    began = time.monotonic()
    export_heartbeats(partial(_heartbeats, context.instance))
    if following.is_resident:
        project.session("the run")  # a run before this one mirrors until Spark has started here
    if batch is not None:
        batch.take_over()
    # A replaced run ends after its running slices, however long they take: their leases keep the next run waiting, and
    # their staged parts would be lost.
    patience: float | None = None
    try:
        record = partial(runs.states.record, log=context.log)
        follow(
            watch,
            scheduler,
            runs.work,
            record,
            following.every_seconds,
            lambda is_idle: runs.lost_spark or _is_over(following, batch, began, is_idle=is_idle),
            polls_after_work=not following.is_resident,
        )
    except INTERRUPTS:
        runs.is_stopping, patience = True, _STOP_SECONDS
        if following.minutes is not None:
            raise
        context.log.info("interrupted: waiting for the running slices")
    finally:
        scheduler.stop(patience)
        if batch is not None:
            batch.leave()
        export_heartbeats(None)
    if runs.lost_spark:
        raise dg.Failure("Spark's JVM has ended, and this process can't start another. The next run continues.")
    return list(runs.reports.values())


def _batch_runner(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    batch: int,
    code: str,
) -> BatchRunner:
    """Return the run as the one that mirrors the batch; tag it with its process."""
    origin = context.run.remote_job_origin
    location = origin.repository_origin.code_location_origin if origin else None
    mirror = mirror_name(context.instance, location, assets.name)
    tag_process(context.instance, context.run_id)
    names = tuple(str(table.name) for table in tables)
    return BatchRunner(project.store, mirror, batch, context.run_id, code, names)


def _is_over(following: FollowSources, batch: BatchRunner | None, began: float, *, is_idle: bool) -> bool:
    """Return whether the run may end, which began at that time of `time.monotonic`."""
    if batch is not None and batch.is_replaced():
        return True
    if following.minutes is None:
        return False
    # A resident run ends when the next one has taken over, or when none has started in time.
    waits = _REPLACED_WITHIN_SECONDS if following.is_resident and batch else 0.0
    return is_idle and time.monotonic() - began - following.minutes * 60 >= waits


def _heartbeats(instance: dg.DagsterInstance) -> dict[str, float]:
    """Return the time of the last heartbeat of each of Dagster's required daemons; 0 if it never ran."""
    beats = {name: status.last_heartbeat for name, status in instance.get_daemon_statuses().items()}
    return {name: beat.timestamp if beat is not None else 0.0 for name, beat in beats.items()}
