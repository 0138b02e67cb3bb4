"""Runs the checks of many tables, several tables at once; one that does not respond holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotDone
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.landing.problems import ProblemKey
from mirror_assets.monitoring import Mirror
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.checks import checks_of
from mirror_assets.orchestration.errors import CHECKS_LATE
from mirror_assets.orchestration.event_metadata import ChangedMirrors
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.silent_stores import SilentStores
from mirror_assets.telemetry.record import record_check
from mirror_assets.verify.check_result import CheckResult

# Checks without Spark wait for stores most of the time; with Spark, each table at once takes memory.
_TABLES_AT_ONCE, _WITH_SPARK_AT_ONCE = 16, 4
# A table whose store never answers keeps a run of the schedule no longer than this.
LONGEST_SECONDS = 900.0


@dataclass(frozen=True)
class EvaluatedCheck:
    """The result of a table's check."""

    key: ProblemKey
    check: Check
    evaluation: dg.AssetCheckEvaluation


@dataclass(frozen=True)
class EvaluatedTable:
    """The results of a table's checks, and the materialization of its mirror if that has `changed`."""

    table: TableName
    results: Sequence[EvaluatedCheck]
    changed: dg.AssetMaterialization | None = None


@dataclass(frozen=True)
class TableChecks:
    """The checks of a project's tables.

    `names` selects checks; empty: all. Without `with_spark`, those that need Spark are left out. A scheduled run reads
    only landing files that are new. A check that can't run because a store does not respond is a warning in it, unless
    it is among those that have `failed_before`. `changed` finds the mirrors that have changed.
    """

    instance: dg.DagsterInstance
    assets: MirrorAssets
    composed: Project
    mirror: Mirror
    names: frozenset[str] = frozenset()
    with_spark: bool = False
    is_scheduled: bool = True
    failed_before: frozenset[ProblemKey] = frozenset()
    changed: ChangedMirrors | None = None
    _silent: SilentStores = field(default_factory=SilentStores)

    def selected(self, table: TableSettings) -> Sequence[Check]:
        """Return the table's checks that run."""
        return [
            check
            for check in checks_of(self.composed.config, table)
            if (not self.names or check.name in self.names) and (self.with_spark or not check.needs_spark)
        ]

    def run(self, table: TableSettings) -> EvaluatedTable:
        """Run the table's checks one after another, and return their results.

        A check that can't run has failed. If one cause fails several checks, the first reports it, and the others keep
        their last results.
        """
        checked = CheckedTable(
            self.instance, self.assets, self.composed, table, self.is_scheduled, self.with_spark, self.mirror
        )
        causes, results = set[str](), list[EvaluatedCheck]()
        for check in self.selected(table):
            try:
                with self._silent.asking(table, zone=check.reads_zone, source=check.reads_source):
                    found = check.run(checked)
            except Exception as raised:  # noqa: BLE001 a defect of one table must not stop the checks of the others
                error = raised if isinstance(raised, MirrorError) else unexpected(str(table.name), raised)
                cause = str(error) if error.code is ErrorCode.UNEXPECTED else error.code.value
                if cause in causes:
                    continue
                causes.add(cause)
                found = self._unable(table, check, error)
            if found is not None:
                if not found.passed and "code" in found.metadata:
                    causes.add(str(found.metadata["code"]))
                record_check(str(table.name), check.name, passed=found.passed)
                results.append(self._evaluated(table, check, found))
        return EvaluatedTable(table.name, results, self._changed(checked))

    def _changed(self, checked: CheckedTable) -> dg.AssetMaterialization | None:
        """Return the event of a mirror that has changed; none where that can't be read: `replicating` says why."""
        if self.changed is None:
            return None
        try:
            with self._silent.asking(checked.table, source=False):
                return self.changed.event(checked.mirror.table(checked.table.name), checked.context.manifest())
        except MirrorError:
            return None

    def of_tables(self, tables: Sequence[TableSettings], warn: Callable[[str], None]) -> Iterator[EvaluatedTable]:
        """Yield the tables as their checks end; a table whose checks do not end in time has failed.

        `warn` takes a line for the log. Runs with Spark have no deadline.
        """
        pool = DaemonPool("checks", _WITH_SPARK_AT_ONCE if self.with_spark else _TABLES_AT_ONCE)
        limit = None if self.with_spark else LONGEST_SECONDS
        futures = {pool.submit(partial(self.run, table)): table for table in tables}
        try:
            for done in as_completed(futures, limit):
                yield done.result()
        except NotDone:
            waiting = [table for future, table in futures.items() if not future.done()]
            warn(f"{len(waiting)} tables are left alone: no answer within {LONGEST_SECONDS:.0f} s")
            yield from (EvaluatedTable(table.name, [self._unanswered(table)]) for table in waiting)

    def _unanswered(self, table: TableSettings) -> EvaluatedCheck:
        """Return the result for a table whose checks have not ended in time."""
        error = CHECKS_LATE(table=table.name, seconds=LONGEST_SECONDS)
        first = self.selected(table)[0]
        return self._evaluated(table, first, self._unable(table, first, error))

    def _unable(self, table: TableSettings, check: Check, error: MirrorError) -> CheckResult:
        """Return the result of a check that can't run."""
        may_pass = isinstance(error, RetryError | UnknownOutcome) and check.problem(table) not in self.failed_before
        return CheckResult(
            check.name,
            (f"it could not be checked: {error.what}",),
            {"code": error.code.value},
            is_warning=self.is_scheduled and may_pass,
            next_step=error.next_step,
        )

    def _evaluated(self, table: TableSettings, check: Check, found: CheckResult) -> EvaluatedCheck:
        return EvaluatedCheck(check.problem(table), check, check.evaluation(self.assets, table.name, found))
