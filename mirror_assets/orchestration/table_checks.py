"""Runs the checks of one table outside of asset runs: in a job for all tables, by a schedule, from the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import TableSettings
from mirror_assets.direct_lake.asset_checks import LAKE_CHECKS
from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError, UnknownOutcome
from mirror_assets.fabric.monitoring import WatchedMirror
from mirror_assets.landing.format import Manifest
from mirror_assets.orchestration.asset_checks import (
    HISTORY_RETENTION,
    LANDED_CHECKS,
    CheckRuns,
    check_result,
    evaluation_of,
    history_runs,
    landed_runs,
    pending_once,
    readable_runs,
    run_reconciled,
)
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.partitions import as_slice
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.orchestration.resources import SourceTables
from mirror_assets.orchestration.settled_checks import settled
from mirror_assets.orchestration.source_and_mirror_checks import mirror_runs, source_runs
from mirror_assets.orchestration.staged_checks import NOTHING_STAGED, run_staged
from mirror_assets.pipeline.check import BLOCKING_CHECKS
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.pipeline.next_action import READABLE
from mirror_assets.pipeline.silent_stores import SilentStores
from mirror_assets.pipeline.stage_range import staged_ahead
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.replicating import REPLICATING

RECONCILED = "reconciled"
_OTHERS = (READABLE, "retention", REPLICATING, RECONCILED, HISTORY_RETENTION)
CHECK_NAMES = tuple(sorted({*BLOCKING_CHECKS, *LANDED_CHECKS, *LAKE_CHECKS, *_OTHERS}))


def known_checks(names: Sequence[str]) -> frozenset[str]:
    """Return the names. Raises SettingError for one that no check has: a run of no checks would look well."""
    for name in names:
        if name not in CHECK_NAMES:
            raise SettingError(
                f"no check is called {name!r}.", f"use one of: {', '.join(CHECK_NAMES)}.", code=ErrorCode.CONFIG_INVALID
            )
    return frozenset(names)


# What these read, the source has no part in.
_OF_ZONE = frozenset({"file_continuity", "metadata_unchanged", REPLICATING})
# A source or mirror that can't be asked for so long is no passing fault any more.
_PASSING_SECONDS = 3600.0
_SINCE = "unreachable_since"

Found: TypeAlias = dg.AssetCheckEvaluation
# A check that has nothing to look at returns None.
_Run: TypeAlias = Callable[[], dg.AssetCheckResult | None]


@dataclass(frozen=True)
class TableChecks:
    """The checks of a project's tables.

    `names` are the chosen ones; none: all. Without `with_spark`, those that may need Spark are left out. `recorded` is
    there for a run that comes again and again: it has what the last ones have found.
    """

    instance: dg.DagsterInstance
    composed: Project
    sources: SourceTables
    mirror: WatchedMirror
    names: frozenset[str] = frozenset()
    with_spark: bool = True
    recorded: RecordedChecks | None = None
    silent: SilentStores = field(default_factory=SilentStores)
    now: float = field(default_factory=time.time)

    def keys(self, table: TableSettings) -> list[dg.AssetCheckKey]:
        """Return the table's checks."""
        return list(self._runs(table))

    def of(self, table: TableSettings) -> Iterator[Found]:
        """Run the table's checks one after another, and yield what they find.

        A check that can't run has failed. Of several that errors of one code stop, the first says so, and the others
        stay as they were; likewise where a check has failed with that code. Two readers may say one thing in two ways.
        """
        told = set[str]()
        for key, run in self._runs(table).items():
            try:
                with self.silent.asking(table, zone=key.name != READABLE, source=key.name not in _OF_ZONE):
                    result = run()
            except Exception as raised:  # noqa: BLE001 one table's defect must not keep the others from being checked
                error = raised if isinstance(raised, MirrorError) else unexpected(str(table.name), raised)
                if _cause(error) in told:
                    continue
                told.add(_cause(error))
                result = self._unable(key, error)
            if result is not None:
                told |= _causes(result)
                yield evaluation_of(result)

    def unanswered(self, table: TableSettings, seconds: float) -> Found:
        """Return the result for a table whose checks have not ended after so many seconds."""
        error = RetryError(
            f"the checks of {table.name} have not ended after {seconds:.0f} s: a store gives no answer.",
            "see whether the stores of the source and of the landing zone can be reached from here.",
            code=ErrorCode.STORE_UNAVAILABLE,
        )
        return evaluation_of(self._unable(self.keys(table)[0], error))

    def _runs(self, table: TableSettings) -> dict[dg.AssetCheckKey, _Run]:
        config, name = self.composed.config, table.name
        pending = pending_once(self.composed.table(table))
        # First what says which errors keep others from running.
        is_again = self.recorded is not None
        by_asset: list[tuple[Kind, CheckRuns | Mapping[str, _Run]]] = [
            (Kind.SOURCE, readable_runs(self.composed.table(table))),
            # The files that have passed once are read again by a person's run only.
            (Kind.LANDING, landed_runs(self.composed, table, is_incremental=is_again, pending=pending)),
            (Kind.SOURCE, source_runs(self.instance, self.composed, table, self.sources, pending)),
            (Kind.CHANGES, self._staged(table)),
            (Kind.MIRROR, mirror_runs(self.instance, self.composed, table, self.sources, self.mirror)),
        ]
        if self.with_spark:
            reconciled = settled(self.composed.table(table), lambda: run_reconciled(self.composed, table))
            by_asset.append((Kind.MIRROR, {RECONCILED: reconciled}))
        if table.keeps_history:
            by_asset.append((Kind.HISTORY, history_runs(config, table, self.sources)))
        return {
            dg.AssetCheckKey(asset_key(kind, name), check): run
            for kind, runs in by_asset
            for check, run in runs.items()
            if not self.names or check in self.names
        }

    def _staged(self, table: TableSettings) -> dict[str, _Run]:
        """Return the checks of staged slices; without Spark, they only take back what nothing bears out any more."""
        feed, context = asset_key(Kind.CHANGES, table.name), self.composed.table(table)
        results = cache(lambda: run_staged(context)[0])

        def run(check: str) -> dg.AssetCheckResult | None:
            if self.with_spark and (found := results().get(check)) is not None:
                return check_result(feed, found)
            failed = self._failed(dg.AssetCheckKey(feed, check))
            if failed is None or staged_ahead(context) or not _is_past(failed, context.manifest()):
                return None
            return check_result(feed, CheckResult(check, note=NOTHING_STAGED))

        return {check: _of(run, check) for check in BLOCKING_CHECKS}

    def _failed(self, key: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
        """Return the newest result of the check if it has failed."""
        last = (self.recorded or RecordedChecks(self.instance, [key])).last(key)
        return None if last is None or last.passed else last

    def _unable(self, key: dg.AssetCheckKey, error: MirrorError) -> dg.AssetCheckResult:
        """Return the result of a check that can't run: a warning for an hour, where waiting may help."""
        since = self._unable_since(key)
        passing = isinstance(error, RetryError | UnknownOutcome) and self.now - since < _PASSING_SECONDS
        is_warning = self.recorded is not None and passing
        metadata: dict[str, MetadataItem] = {"next_step": error.next_step, "code": error.code.value, _SINCE: since}
        return dg.AssetCheckResult(
            asset_key=key.asset_key,
            check_name=key.name,
            passed=False,
            severity=dg.AssetCheckSeverity.WARN if is_warning else dg.AssetCheckSeverity.ERROR,
            description=f"it could not be checked: {error}",
            metadata=metadata,
        )

    def _unable_since(self, key: dg.AssetCheckKey) -> float:
        """Return since when the check can't run, in seconds since 1970."""
        last = self.recorded.last(key) if self.recorded is not None else None
        since = last.metadata.get(_SINCE) if last is not None else None
        value = since.value if since is not None else None
        return float(value) if isinstance(value, int | float) else self.now


def _is_past(failed: dg.AssetCheckEvaluation, manifest: Manifest | None) -> bool:
    """Return whether the slice that has failed has landed since, or can't land any more."""
    told = failed.metadata.get("last_slice") or failed.metadata.get("slice")
    if not isinstance(told, dg.TextMetadataValue) or manifest is None:
        return not isinstance(told, dg.TextMetadataValue)
    key = as_slice(str(told.value))
    return key is None or manifest.epoch > key.epoch or manifest.covered >= key.last


def _cause(error: MirrorError) -> str:
    """Return what tells causes apart: the code, or the text of an error that has no code of its own."""
    return str(error) if error.code is ErrorCode.UNEXPECTED else error.code.value


def _causes(result: dg.AssetCheckResult) -> set[str]:
    code = None if result.passed else (result.metadata or {}).get("code")
    return {str(code.value)} if isinstance(code, dg.TextMetadataValue) else set()


def _of(run: Callable[[str], dg.AssetCheckResult | None], check: str) -> _Run:
    return lambda: run(check)
