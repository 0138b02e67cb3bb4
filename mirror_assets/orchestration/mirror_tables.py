"""Mirrors many tables in one run, round-robin, on one Spark context; a failing table stops only itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import TableSettings
from mirror_assets.encode.session import spark_has_ended
from mirror_assets.errors import MirrorError, SettingError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.check_steps import landing_evaluations
from mirror_assets.orchestration.materialize import INTERRUPTS
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.run_tags import COMMAND_TAG, tag_failing
from mirror_assets.orchestration.table_events import TableEvents
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.batch_runner import BatchRunner
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed, TableBusy, unexpected
from mirror_assets.pipeline.rebuild import MirrorWait, mirror_wait
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


@dataclass
class TableRuns:
    """The work on tables in one run, and a report of each.

    `is_command`: a person or cron runs it, and reads the exit code. A setting that is wrong on such a machine, such as
    missing credentials, is not recorded as a failure of the table.
    """

    context: dg.OpExecutionContext
    project: Project
    events: TableEvents
    states: TableStates
    requested: Range = EVERYTHING
    plan_again: bool = True
    is_command: bool = False
    reports: dict[TableName, TableReport] = field(default_factory=dict)
    lost_spark: bool = False
    is_stopping: bool = False
    _checked: set[TableName] = field(default_factory=set)

    def work(self, table_context: TableContext, rebuild_because: str | None = None) -> TableWork:
        """Mirror the table under its lease, one slice per turn; skip it if another run has the lease."""
        name = table_context.name
        self.reports.setdefault(name, TableReport(str(name)))
        try:
            wait = mirror_wait(self.project.mirror(), name)
            with leased(table_context, self.context.run_id):
                yield from self._slices(table_context, wait, rebuild_because)
        except TableBusy as busy:
            self.context.log.info(busy.what)
            self.reports[name] = self.reports[name].left_to(busy)
        except MirrorError as error:
            self.context.log.error(str(error))  # noqa: TRY400 the message says what to do; a traceback adds nothing
            self._fail(table_context, error)
        except Exception as error:
            self.context.log.exception(f"{name} failed")
            self._fail(table_context, unexpected(str(name), error))

    def _slices(self, table_context: TableContext, wait: MirrorWait, rebuild_because: str | None) -> TableWork:
        name = table_context.name

        def rebuilt(published: Published) -> None:
            self.reports[name] = self.reports[name].with_rebuild(published)
            self.events.rebuilt(table_context, published)

        events = RunEvents(
            self.context.log.info,
            rebuilt,
            lambda slices: self.events.planned(name, slices),
            self.events.boundaries(name),
        )
        slices = mirror_table(
            table_context, wait, events, self.requested, rebuild_because=rebuild_because, plan_again=self.plan_again
        )
        for processed in slices:
            self.events.landed(table_context, processed)
            self.reports[name] = self.reports[name].with_slice(processed)
            self.states.landed(name)
            if name not in self._checked:
                # For Dagster, these hold for all that this run materializes of the table.
                self._checked.add(name)
                warn, table = self.context.log.warning, table_context.table
                self.events.log(list(landing_evaluations(self.context.instance, self.project, table, warn)))
            yield None

    def _fail(self, table_context: TableContext, error: MirrorError) -> None:
        if isinstance(error, ChecksFailed):
            self.events.refused(table_context, error)
        # A range that can't be mirrored is not a failure of the table, and neither is a Spark that stops with the run.
        if self.requested.is_everything and not self.is_stopping:
            if not (self.is_command and isinstance(error, SettingError)):
                note_failure(table_context, error, self.context.log.warning)
            self.states.failed(table_context.name, error)
        self.reports[table_context.name] = self.reports[table_context.name].failed(error)
        self.lost_spark = self.lost_spark or spark_has_ended()


def mirror_tables(
    context: dg.OpExecutionContext,
    project: Project,
    tables: Sequence[TableSettings],
    requested: Range = EVERYTHING,
) -> list[TableReport]:
    """Mirror the tables until nothing is left; return a report of each, in order. Errors are in the reports."""
    states = _states(context)
    is_command = COMMAND_TAG in context.run.tags
    runs = TableRuns(context, project, TableEvents(context), states, requested, is_command=is_command)
    scheduler = Scheduler(_TABLES_AT_ONCE)
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


def _heartbeats(instance: dg.DagsterInstance) -> dict[str, float]:
    """Return the time of the last heartbeat of each of Dagster's required daemons; 0 if it never ran."""
    beats = {name: status.last_heartbeat for name, status in instance.get_daemon_statuses().items()}
    return {name: beat.timestamp if beat is not None else 0.0 for name, beat in beats.items()}


def _states(context: dg.OpExecutionContext) -> TableStates:
    """Return the recorder of failing tables, which also tags the run with their names."""
    origin = context.run.remote_job_origin
    on_change = partial(tag_failing, context.instance, context.run_id)
    return TableStates(context.instance, origin.repository_origin if origin else None, on_change)


@dataclass(frozen=True)
class Following:
    """How a run follows the sources.

    It polls every `every` seconds, for at least `minutes` (None: until it is interrupted), then until nothing is
    pending. In a `batch`, it replaces the run before it and ends when the next one replaces it. It starts with the
    `pending` tables.
    """

    every: float
    minutes: float | None
    batch: BatchRunner | None = None
    pending: tuple[str, ...] = ()

    @property
    def is_resident(self) -> bool:
        """Whether the run continues when nothing is pending."""
        return self.minutes is None or self.minutes > 0

    def is_over(self, began: float, *, is_idle: bool) -> bool:
        """Return whether the run may end, which began at that time of `time.monotonic`."""
        if self.batch is not None and self.batch.is_replaced():
            return True
        if self.minutes is None:
            return False
        over = time.monotonic() - began - self.minutes * 60
        # A resident run ends when the next one has taken over, or when none has started in time.
        waits = _REPLACED_WITHIN_SECONDS if self.is_resident and self.batch else 0.0
        return is_idle and over >= waits


def follow_tables(
    context: dg.OpExecutionContext, project: Project, tables: Sequence[TableSettings], following: Following
) -> list[TableReport]:
    """Mirror commits of the tables as they come; return a report of each table that had work.

    An interrupt ends it after the running slices.
    """
    events, states = TableEvents(context, is_resident=following.is_resident), _states(context)
    runs, scheduler = TableRuns(context, project, events, states, plan_again=False), Scheduler(_TABLES_AT_ONCE)
    contexts = [project.table(table) for table in tables]
    export_tables(str(table.name) for table in tables)
    watch = TableWatch(contexts, events.boundaries, following.is_resident)
    for table_context in contexts:
        if str(table_context.name) in following.pending:
            scheduler.add(table_context.name, runs.work(table_context))
    began = time.monotonic()
    export_heartbeats(partial(_heartbeats, context.instance))
    if following.is_resident:
        project.session("the run")  # a run before this one mirrors until Spark has started here
    if following.batch is not None:
        following.batch.take_over()
    # A replaced run ends after its running slices, however long they take: their leases keep the next run waiting, and
    # their staged parts would be lost.
    patience: float | None = None
    try:
        follow(
            watch,
            scheduler,
            runs.work,
            partial(states.record, log=context.log),
            following.every,
            lambda is_idle: runs.lost_spark or following.is_over(began, is_idle=is_idle),
            polls_after_work=not following.is_resident,
        )
    except INTERRUPTS:
        runs.is_stopping, patience = True, _STOP_SECONDS
        if following.minutes is not None:
            raise
        context.log.info("interrupted: waiting for the running slices")
    finally:
        scheduler.stop(patience)
        if following.batch is not None:
            following.batch.leave()
        export_heartbeats(None)
    if runs.lost_spark:
        raise dg.Failure("Spark's JVM has ended, and this process can't start another. The next run continues.")
    return list(runs.reports.values())
