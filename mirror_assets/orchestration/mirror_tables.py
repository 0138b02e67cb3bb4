"""Mirrors many tables in one run, round-robin, on one Spark context; a failing table stops only itself."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.config.table_settings import TableSettings
from mirror_assets.encode.session import spark_has_ended
from mirror_assets.errors import Code, MirrorError, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Published
from mirror_assets.orchestration.asset_check import CheckedTable
from mirror_assets.orchestration.check_runs import evaluations
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import registered_boundaries
from mirror_assets.orchestration.run_reports import TableReport
from mirror_assets.orchestration.runs import COMMAND_TAG, INTERRUPTS
from mirror_assets.orchestration.table_events import EventQueue, TableEvents, is_storage_fault
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY, ChecksFailed, unexpected
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.leases import leased
from mirror_assets.pipeline.next_action import Land, Rebuild, note_failure
from mirror_assets.pipeline.plan import Boundaries
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.run import mirror_table
from mirror_assets.pipeline.scheduler import Scheduler, TableWork
from mirror_assets.pipeline.table_health import NOT_FAILING, NOT_HELD, READABLE, failed_check
from mirror_assets.pipeline.table_watch import PollResult, TableWatch
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.progress import end_work, expect
from mirror_assets.telemetry.record import record_check
from mirror_assets.telemetry.scope import table_scope

TABLES_AT_ONCE = 4
# Dagster ends a run that was canceled after three minutes; what a slice has begun is staged again by the next run.
STOP_SECONDS = 150.0


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


class TableRuns:
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
        *,
        is_following: bool = False,
    ) -> None:
        """Prepare the work; a run that is following polls the tables, so it plans each only once per poll."""
        self._context, self._assets, self._project, self._requested = context, assets, project, requested
        self._plan_again = not is_following
        self._is_command = not is_following and COMMAND_TAG in context.run.tags
        self._queue = queue
        self._events = TableEvents(context, assets, queue)
        self.boundaries = LastBoundaries(context.instance, assets)
        self.watch: TableWatch | None = None
        self.reports: dict[TableName, TableReport] = {}
        self.lost_spark = False
        self.is_stopping = False
        self._checked: set[TableName] = set()
        self._errors: dict[TableName, Code] = {}

    def work(self, table: TableContext, rebuild_because: str | None = None) -> TableWork:
        """Mirror the table under its lease, one slice per turn; skip it if another run has the lease."""
        self.reports.setdefault(table.name, TableReport(str(table.name)))
        try:
            with leased(table, self._context.run_id):
                yield from self._slices(table, rebuild_because)
        except TABLE_BUSY.error as error:
            self._queue.info(error.what)
            self.reports[table.name] = self.reports[table.name].left_to(error)
        except MirrorError as error:
            self._fail(table, error, str(error))  # the message says what to do; a traceback adds nothing
        except Exception as error:  # noqa: BLE001 a defect of one table must not stop the others
            self._fail(table, unexpected(str(table.name), error), f"{table.name} failed\n{traceback.format_exc()}")
        finally:
            end_work(str(table.name))

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

    def follow_poll(self, poll: PollResult, scheduler: Scheduler) -> None:
        """Schedule the work that a poll has found; log a new error, unless a retry may resolve it."""
        name, action = poll.context.name, poll.action
        if isinstance(action, Land | Rebuild):
            scheduler.add(name, self.work(poll.context, action.why if isinstance(action, Rebuild) else None))
        elif isinstance(action, MirrorError):
            if not isinstance(action, RetryError | UnknownOutcome):
                with table_scope(str(name)):
                    self._log_new(name, action, str(action))
        elif poll.is_complete and action.mark is not None:
            self._note_well(name)

    def _slices(self, table: TableContext, rebuild_because: str | None) -> TableWork:
        name, queue = table.name, self._queue
        queue.wait_for_room(lambda: self.is_stopping)
        events = mirror_table(
            table,
            self._project.mirror(),
            queue.info,
            self._requested,
            boundaries=self.boundaries.of(name),
            rebuild_because=rebuild_because,
            plan_again=self._plan_again,
        )
        began = time.monotonic()
        for event in events:
            if isinstance(event, tuple):
                self._events.planned(name, event)
            elif isinstance(event, Published):
                self.reports[name] = self.reports[name].with_rebuild(event, time.monotonic() - began)
                self._events.rebuilt(table, event)
                self._check_table(table, is_new=True)
            else:
                yield from self._land(table, event)
                queue.wait_for_room(lambda: self.is_stopping)
            began = time.monotonic()

    def _land(self, table: TableContext, processed: ProcessedSlice) -> TableWork:
        """Log the slice that has landed; its checks in the table's next turn, when the others have had theirs.

        To record ten results takes Dagster longer than a small slice takes to land.
        """
        self._events.landed(table, processed)
        self.reports[table.name] = self.reports[table.name].with_slice(processed)
        self._note_well(table.name)
        try:
            yield None
        finally:  # also when the run ends here
            self._events.checked(table, processed)
            self._check_table(table)

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
    runs = TableRuns(context, assets, project, requested, EventQueue(context.log))
    scheduler = Scheduler(TABLES_AT_ONCE)
    for table in tables:
        expect(str(table.name), ())
        scheduler.add(table.name, runs.work(project.table(table)))
    try:
        scheduler.finish()
    except INTERRUPTS:
        runs.is_stopping = True
        raise
    finally:
        scheduler.stop(STOP_SECONDS)
    return [runs.reports[table.name] for table in tables]
