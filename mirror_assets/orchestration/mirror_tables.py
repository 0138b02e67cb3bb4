"""Mirrors many tables in one run, in turns, on one Spark context; a table that fails stops itself only."""

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
from mirror_assets.orchestration.asset_checks import landed_evaluations
from mirror_assets.orchestration.materialize import INTERRUPTS
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.run_tags import COMMAND_TAG, tag_failing
from mirror_assets.orchestration.table_events import TableEvents
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.batch_runner import BatchRunner
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed, TableBusy, unexpected
from mirror_assets.pipeline.follow import Follow
from mirror_assets.pipeline.rebuild import MirrorWait, mirror_wait
from mirror_assets.pipeline.run import RunEvents, mirror_table
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.pipeline.table_watch import TableWatch
from mirror_assets.pipeline.turns import Turns, Work
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.record import export_heartbeats, export_tables

_TABLES_AT_ONCE = 4
# Dagster ends a run that was canceled after three minutes; what a slice has begun is staged again by the next run.
_STOP_SECONDS = 150.0
# A run whose time is over waits so long for the one that replaces it.
_REPLACED_WITHIN_SECONDS = 120.0


@dataclass
class TableRuns:
    """The work on tables in one run, and what came of it.

    `is_command`: a person or cron runs it, and reads the exit code. That such a machine has no keys says nothing about
    the table, so no scheduler need wait for it.
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

    def work(self, table_context: TableContext, rebuild_because: str | None = None) -> Work:
        """Mirror the table under its lease, one slice a turn; leave it to another run that has the lease."""
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
            self.context.log.error(str(error))  # noqa: TRY400 it says what to do; where it was raised says nothing more
            self._fail(table_context, error)
        except Exception as error:
            self.context.log.exception(f"{name} failed")
            self._fail(table_context, unexpected(str(name), error))

    def _slices(self, table_context: TableContext, wait: MirrorWait, rebuild_because: str | None) -> Work:
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
                self.events.log(list(landed_evaluations(self.project, table_context.table, self.context.log.warning)))
            yield None

    def _fail(self, table_context: TableContext, error: MirrorError) -> None:
        if isinstance(error, ChecksFailed):
            self.events.refused(table_context, error)
        # That a range can't be had is no fault of the table's, nor is it that Spark is stopped together with the run.
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
    turns = Turns(_TABLES_AT_ONCE)
    for table in tables:
        turns.add(table.name, runs.work(project.table(table)))
    try:
        turns.finish()
    except INTERRUPTS:
        runs.is_stopping = True
        raise
    finally:
        turns.stop(_STOP_SECONDS)
    return [runs.reports[table.name] for table in tables]


def _heartbeats(instance: dg.DagsterInstance) -> dict[str, float]:
    """Return when each of Dagster's daemons that has to run last said that it does; 0 if never."""
    beats = {name: status.last_heartbeat for name, status in instance.get_daemon_statuses().items()}
    return {name: beat.timestamp if beat is not None else 0.0 for name, beat in beats.items()}


def _states(context: dg.OpExecutionContext) -> TableStates:
    """Return what records how tables are; the run's tags name those that fail."""
    origin = context.run.remote_job_origin
    tell = partial(tag_failing, context.instance, context.run_id)
    return TableStates(context.instance, origin.repository_origin if origin else None, tell)


@dataclass(frozen=True)
class Following:
    """How a run follows the sources.

    It looks every `every` seconds, for at least so many `minutes`, then until nothing is pending; None: until it is
    interrupted. `batch` is what it replaces other runs in, and is replaced in, if there is one. It begins with the
    tables that are `pending`.
    """

    every: float
    minutes: float | None
    batch: BatchRunner | None = None
    pending: tuple[str, ...] = ()

    @property
    def stays(self) -> bool:
        """Whether the run goes on when nothing is pending."""
        return self.minutes is None or self.minutes > 0

    def is_over(self, began: float, *, is_idle: bool) -> bool:
        """Return whether the run may end, which began at that time of `time.monotonic`."""
        if self.batch is not None and self.batch.is_replaced():
            return True
        if self.minutes is None:
            return False
        over = time.monotonic() - began - self.minutes * 60
        # A run that stays ends when the next one has taken over, or when none has come.
        waits = _REPLACED_WITHIN_SECONDS if self.stays and self.batch else 0.0
        return is_idle and over >= waits


def follow_tables(
    context: dg.OpExecutionContext, project: Project, tables: Sequence[TableSettings], following: Following
) -> list[TableReport]:
    """Mirror commits of the tables as they come; return a report of each table that had work.

    An interrupt ends it behind the slices that are under way.
    """
    events, states = TableEvents(context, stays=following.stays), _states(context)
    runs, turns = TableRuns(context, project, events, states, plan_again=False), Turns(_TABLES_AT_ONCE)
    contexts = [project.table(table) for table in tables]
    export_tables(str(table.name) for table in tables)
    watch = TableWatch(contexts, events.boundaries, following.stays)
    for table_context in contexts:
        if str(table_context.name) in following.pending:
            turns.add(table_context.name, runs.work(table_context))
    tell = partial(states.tell, log=context.log)
    follow = Follow(watch, turns, runs.work, tell, following.every, not following.stays)
    began = time.monotonic()
    export_heartbeats(partial(_heartbeats, context.instance))
    if following.stays:
        project.session("the run")  # a run before this one mirrors until Spark has started here
    if following.batch is not None:
        following.batch.take_over()
    # A run that is replaced ends behind the slices under way, however long they take: their leases keep the next run
    # from them, and what they have staged would be lost.
    patience: float | None = None
    try:
        follow.until(lambda is_idle: runs.lost_spark or following.is_over(began, is_idle=is_idle))
    except INTERRUPTS:
        runs.is_stopping, patience = True, _STOP_SECONDS
        if following.minutes is not None:
            raise
        context.log.info("interrupted: waiting for the slices that are under way")
    finally:
        turns.stop(patience)
        if following.batch is not None:
            following.batch.leave()
        export_heartbeats(None)
    if runs.lost_spark:
        raise dg.Failure("Spark's JVM has ended, and this process can't start another: the next run goes on.")
    return list(runs.reports.values())
