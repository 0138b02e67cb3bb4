"""Mirrors many tables in one run, round-robin, on one Spark context; a failing table stops only itself."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import dagster as dg
from pydantic import Field

from mirror_assets.composition import Project
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.encode.session import spark_has_ended
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.asset_check import CheckedTable
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.check_runs import evaluations
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import registered_boundaries
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.runs import COMMAND_TAG, INTERRUPTS, mirror_name, tag_process
from mirror_assets.orchestration.table_events import EventQueue, TableEvents, is_storage_fault
from mirror_assets.pipeline.backoff import note_failure
from mirror_assets.pipeline.batch_runner import BatchRunner
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY, ChecksFailed, unexpected
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, READABLE, Rest, failed_check
from mirror_assets.pipeline.plan import Boundaries
from mirror_assets.pipeline.rebuild_table import mirror_wait
from mirror_assets.pipeline.run import RunEvents, mirror_table
from mirror_assets.pipeline.scheduler import Scheduler, TableWork, follow
from mirror_assets.pipeline.table_lease import leased
from mirror_assets.pipeline.table_watch import PollResult, TableWatch
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.record import export_heartbeats, export_tables, record_check
from mirror_assets.telemetry.scope import table_scope

_TABLES_AT_ONCE = 4
# Dagster ends a run that was canceled after three minutes; what a slice has begun is staged again by the next run.
_STOP_SECONDS = 150.0
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


@dataclass(frozen=True)
class LastBoundaries:
    """The registered slices of tables, as last read while Dagster's storage does not respond."""

    instance: dg.DagsterInstance
    assets: MirrorAssets
    _known: dict[TableName, frozenset[int]] = field(default_factory=dict)

    def of(self, table: TableName) -> Boundaries:
        """Return the function as `registered_boundaries` does."""
        read = registered_boundaries(self.instance, self.assets, table)

        def boundaries(epoch: int, covered: int) -> frozenset[int]:
            try:
                self._known[table] = read(epoch, covered)
            except Exception as error:
                if not is_storage_fault(error):
                    raise
            return self._known.get(table, frozenset())

        return boundaries


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
        queue: EventQueue,
        following: FollowSources | None = None,
    ) -> None:
        """Prepare the work; a run that is `following` polls the tables, so it plans each only once per poll."""
        self._context, self._assets, self._project, self._requested = context, assets, project, requested
        self._plan_again = following is None
        self._is_command = following is None and COMMAND_TAG in context.run.tags
        self._queue = queue
        is_resident = following is not None and following.is_resident
        self._events = TableEvents(context, assets, queue, is_resident=is_resident)
        self.boundaries = LastBoundaries(context.instance, assets)
        self.watch: TableWatch | None = None
        self.reports: dict[TableName, TableReport] = {}
        self.lost_spark = False
        self.is_stopping = False
        self._checked: set[TableName] = set()
        self._errors: dict[TableName, ErrorCode] = {}

    def work(self, table: TableContext, rebuild_because: str | None = None) -> TableWork:
        """Mirror the table under its lease, one slice per turn; skip it if another run has the lease."""
        self.reports.setdefault(table.name, TableReport(str(table.name)))
        try:
            with leased(table, self._context.run_id):
                yield from self._slices(table, rebuild_because)
        except MirrorError as error:
            if error.row is TABLE_BUSY:
                self._queue.info(error.what)
                self.reports[table.name] = self.reports[table.name].left_to(error)
                return
            self._fail(table, error, str(error))  # the message says what to do; a traceback adds nothing
        except Exception as error:  # noqa: BLE001 a defect of one table must not stop the others
            self._fail(table, unexpected(str(table.name), error), f"{table.name} failed\n{traceback.format_exc()}")

    def start_spark(self) -> None:
        """Start Spark, so that the first commit lands soon."""
        self._project.session("the run")

    def heartbeats(self) -> dict[str, float]:
        """Return the time of the last heartbeat of each of Dagster's required daemons; 0 if it never ran."""
        try:
            statuses = self._context.instance.get_daemon_statuses()
        except Exception as error:
            if not is_storage_fault(error):
                raise
            return {}
        beats = {name: status.last_heartbeat for name, status in statuses.items()}
        return {name: beat.timestamp if beat is not None else 0.0 for name, beat in beats.items()}

    def note_poll(self, poll: PollResult) -> None:
        """Log a new error of a poll; errors that a retry may resolve are no failure."""
        name, action = poll.context.name, poll.action
        if isinstance(action, MirrorError):
            if not isinstance(action, RetryError | UnknownOutcome):
                with table_scope(str(name)):
                    self._log_new(name, action, str(action))
        elif poll.is_complete and isinstance(action, Rest) and action.mark is not None:
            self._note_well(name)

    def _slices(self, table: TableContext, rebuild_because: str | None) -> TableWork:
        name, queue = table.name, self._queue

        def rebuilt(published: Published) -> None:
            self.reports[name] = self.reports[name].with_rebuild(published)
            self._events.rebuilt(table, published)
            self._check_table(table, is_new=True)

        events = RunEvents(queue.info, rebuilt, partial(self._events.planned, name), self.boundaries.of(name))
        queue.wait_for_room(lambda: self.is_stopping)
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
            self._note_well(name)
            try:
                yield None
            finally:  # also when the run ends here
                # In the table's next turn, when the others have had theirs: to record ten results takes Dagster longer
                # than a small slice takes to land.
                self._events.checked(table, processed)
                self._check_table(table)
            queue.wait_for_room(lambda: self.is_stopping)

    def _check_table(self, table: TableContext, *, is_new: bool = False) -> None:
        """Record the checks of source and landing, once, and again for a table that `is_new` after a rebuild.

        For Dagster, they hold for all that this run materializes of them.
        """
        if table.name in self._checked and not is_new:
            return
        checked = CheckedTable(self._context.instance, self._assets, self._project, table.table, is_incremental=True)
        try:
            found = list(evaluations(checked, (AssetKind.SOURCE, AssetKind.LANDING), self._queue.warning))
        except Exception as error:
            if not is_storage_fault(error):
                raise
            return  # the next slice retries
        self._checked.add(table.name)
        self._events.record(found)

    def _fail(self, table: TableContext, error: MirrorError, message: str) -> None:
        self.reports[table.name] = self.reports[table.name].failed(error)
        self.lost_spark = self.lost_spark or spark_has_ended()
        try:
            self._record_failure(table, error, message)
        except Exception:  # Dagster's database may be unreachable: the report and other tables don't depend on it
            self._context.log.exception(f"the failure of {table.name} could not be recorded")

    def _record_failure(self, table: TableContext, error: MirrorError, message: str) -> None:
        if self.is_stopping:  # Spark fails what it is interrupted in: that is no second problem
            self._queue.info(f"{table.name}: interrupted: {error.what}")
        else:
            self._log_new(table.name, error, message)
        if isinstance(error, ChecksFailed):
            self._events.refused(table, error)
        # A range that can't be mirrored is not a failure of the table, and neither is a Spark that stops with the run.
        is_failure = self._requested.is_everything and not self.is_stopping
        if is_failure and not (self._is_command and isinstance(error, SettingError)):
            is_recorded = note_failure(table, error, self._queue.warning)
            if not is_recorded and self.watch is not None:
                self.watch.pause_unrecorded(table.name)

    def _log_new(self, table: TableName, error: MirrorError, message: str) -> None:
        """Log the error, unless the table's last one has the same code and nothing has landed since."""
        record_check(str(table), failed_check(error), passed=False)
        if self._errors.get(table) is not error.code:
            self._errors[table] = error.code
            self._queue.error(message)

    def _note_well(self, table: TableName) -> None:
        """Forget the table's error: it has landed a slice, or has nothing left to land."""
        self._errors.pop(table, None)
        for check in (READABLE, NOT_HELD, NOT_FAILING):
            record_check(str(table), check, passed=True)


def mirror_tables(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    requested: Range = EVERYTHING,
) -> list[TableReport]:
    """Mirror the tables until nothing is left; return a report of each, in order. Errors are in the reports."""
    runs = _TableRuns(context, assets, project, requested, EventQueue(context.log))
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
    batch = _batch_runner(context, assets, project, tables, following, queue)
    with batch.running() if batch is not None else nullcontext():
        if batch is not None and (reason := batch.reason_to_end()):
            queue.info(f"the run ends: {reason}")
            return []
        runs = _TableRuns(context, assets, project, EVERYTHING, queue, following)
        try:
            _follow(runs, [project.table(table) for table in tables], following, batch, queue)
        finally:
            queue.close()
    return list(runs.reports.values())


def _follow(
    runs: _TableRuns,
    contexts: Sequence[TableContext],
    following: FollowSources,
    batch: BatchRunner | None,
    queue: EventQueue,
) -> None:
    scheduler, began = Scheduler(_TABLES_AT_ONCE), time.monotonic()
    export_tables(str(context.name) for context in contexts)
    export_heartbeats(runs.heartbeats)
    runs.watch = TableWatch(contexts, runs.boundaries.of, following.is_resident)
    for context in contexts:
        if str(context.name) in following.pending:
            scheduler.add(context.name, runs.work(context))
    if following.is_resident:
        runs.start_spark()

    def is_over(is_idle: bool) -> bool:  # noqa: FBT001 the scheduler's callback
        queue.flush()
        reason = None if queue.is_waiting else _reason_to_end(following, batch, scheduler, began, is_idle=is_idle)
        if reason:
            queue.info(f"the run ends: {reason}")
        return runs.lost_spark or reason is not None

    patience = _END_SECONDS
    try:
        follow(
            runs.watch,
            scheduler,
            runs.work,
            runs.note_poll,
            following.every_seconds,
            is_over,
            polls_after_work=not following.is_resident,
        )
    except INTERRUPTS:
        runs.is_stopping, patience = True, _STOP_SECONDS
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


def _batch_runner(
    context: dg.OpExecutionContext,
    assets: MirrorAssets,
    project: Project,
    tables: Sequence[TableSettings],
    following: FollowSources,
    queue: EventQueue,
) -> BatchRunner | None:
    """Return the run as the one that mirrors its batch, and tag it with its process; None for a run without a batch."""
    if following.batch is None:
        return None
    origin = context.run.remote_job_origin
    location = origin.repository_origin.code_location_origin if origin else None
    mirror = mirror_name(context.instance, location, assets.name)
    queue.record(partial(tag_process, context.instance, context.run_id))
    names = tuple(str(table.name) for table in tables)
    return BatchRunner(project.store, mirror, following.batch, context.run_id, following.code, names)


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
