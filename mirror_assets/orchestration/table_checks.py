"""Runs the checks of tables outside of asset runs: in a job for all tables, by a schedule, from the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, UnknownOutcome
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.orchestration.check import Check, CheckedTable
from mirror_assets.orchestration.checks import checks_of
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.silent_stores import SilentStores
from mirror_assets.verify.check_result import CheckResult

# A source or mirror that can't be reached for this long is an error, no longer a warning.
_WARNING_SECONDS = 3600.0
_SINCE = "unreachable_since"


@dataclass(frozen=True)
class TableChecks:
    """The checks of a project's tables.

    `names` selects checks; empty: all. Without `with_spark`, those that need Spark are left out. `recorded` has the
    newest results, for a scheduled run: it reads only landing files that are new, and an unreachable store is a warning
    at first.
    """

    instance: dg.DagsterInstance
    composed: Project
    mirror: Mirror
    names: frozenset[str] = frozenset()
    with_spark: bool = True
    recorded: RecordedChecks | None = None
    silent: SilentStores = field(default_factory=SilentStores)
    now: float = field(default_factory=time.time)

    def selected(self, table: TableSettings) -> Sequence[Check]:
        """Return the table's checks that run."""
        return [
            check
            for check in checks_of(self.composed.config, table)
            if (not self.names or check.name in self.names) and (self.with_spark or not check.needs_spark)
        ]

    def run(self, table: TableSettings) -> Iterator[dg.AssetCheckEvaluation]:
        """Run the table's checks one after another, and yield their results.

        A check that can't run has failed. If one cause fails several checks, the first reports it, and the others keep
        their last results.
        """
        is_scheduled = self.recorded is not None
        checked = CheckedTable(
            self.instance, self.composed, table, is_scheduled, self.with_spark, self.recorded, self.mirror
        )
        causes = set[str]()
        for check in self.selected(table):
            try:
                with self.silent.asking(table, zone=check.reads_zone, source=check.reads_source):
                    found = check.run(checked)
            except Exception as raised:  # noqa: BLE001 a defect of one table must not stop the checks of the others
                error = raised if isinstance(raised, MirrorError) else unexpected(str(table.name), raised)
                cause = str(error) if error.code is ErrorCode.UNEXPECTED else error.code.value
                if cause in causes:
                    continue
                causes.add(cause)
                found = self._unable(check.key(table.name), error)
            if found is not None:
                if not found.passed and "code" in found.metadata:
                    causes.add(str(found.metadata["code"]))
                yield check.evaluation(table.name, found)

    def unanswered(self, table: TableSettings, seconds: float) -> dg.AssetCheckEvaluation:
        """Return the result for a table whose checks have not ended after this many seconds."""
        first = self.selected(table)[0]
        error = RetryError(
            f"the checks of {table.name} have not ended after {seconds:.0f} s: a store does not respond.",
            "check that this machine reaches the stores of the source and of the landing zone.",
            code=ErrorCode.STORE_UNAVAILABLE,
        )
        return first.evaluation(table.name, self._unable(first.key(table.name), error))

    def _unable(self, key: dg.AssetCheckKey, error: MirrorError) -> CheckResult:
        """Return the result of a check that can't run; in a scheduled run, first a warning if a retry may help."""
        last = self.recorded.last(key) if self.recorded is not None else None
        recorded = last.metadata.get(_SINCE) if last is not None else None
        since = float(recorded.value) if isinstance(recorded, dg.FloatMetadataValue) and recorded.value else self.now
        may_resolve = isinstance(error, RetryError | UnknownOutcome) and self.now - since < _WARNING_SECONDS
        return CheckResult(
            key.name,
            (f"it could not be checked: {error}",),
            {"code": error.code.value, _SINCE: since},
            is_warning=self.recorded is not None and may_resolve,
            next_step=error.next_step,
        )
