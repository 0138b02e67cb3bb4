"""Run the blocking checks on a staged slice and record their verdicts: write, audit, publish."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_VERSION, projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.feature import SliceCheck, StagedRows, slice_checks
from mirror_assets.landing.errors import LOST_RACE
from mirror_assets.landing.format import CheckVerdict, SliceKind, SliceRecord
from mirror_assets.landing.staged_parts import add_verdicts, fetch_parts
from mirror_assets.pipeline.context import TableContext, has_landed, not_overtaken, reading
from mirror_assets.pipeline.errors import CHECK_NAME_TAKEN, ChecksFailed, slice_checks_failed
from mirror_assets.pipeline.slice_source import scan_of, source_read, versions_compared
from mirror_assets.pipeline.source_check import table_columns, table_projection
from mirror_assets.source.commits import Commit, CommitRange
from mirror_assets.source.errors import FILE_UNFOUND, SparkFailed
from mirror_assets.source.scan import Scan
from mirror_assets.source.scan_builder import VersionPart, scan_changes, scan_differences, scan_version
from mirror_assets.source.schema import ALL_ROWS, Projection, parse_schema
from mirror_assets.telemetry.record import Stage, record_check, set_attempt, stage_span
from mirror_assets.verify.changed_keys import KeyReader
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.conservation import ROW_CONSERVATION, CountedRows, ScannedCounts, SliceRows, row_conservation
from mirror_assets.verify.ledger_log import commits_ledger, version_ledger
from mirror_assets.verify.order import SparkChangeReader, row_order
from mirror_assets.verify.staged import StagedSlice, key_presence, marker_values, parts_unchanged, schema_compatibility
from mirror_assets.verify.uniqueness import inspect_keys, key_uniqueness, version_uniqueness
from mirror_assets.zones import PathMissing

_PRE, _POST = "update_preimage", "update_postimage"


@dataclass(frozen=True)
class ScanCounter:
    """Counts the rows of the slice's scans."""

    context: TableContext
    record: SliceRecord

    def count(self) -> ScannedCounts:
        """Return the counts of one complete reading. Raises what reading the source raises."""
        record = self.record
        projection = table_projection(self.context.config, self.context.table, parse_schema(record.source_schema))
        with spark_errors(f"{record.table}, counting the rows of {self.context.source}"):
            read = self._counted(ALL_ROWS)
            return ScannedCounts(read, self._counted(projection) if projection.where else read)

    def _counted(self, projection: Projection) -> Mapping[int, CountedRows]:
        found: defaultdict[int, CountedRows] = defaultdict(CountedRows)
        for scan, is_new in self._scans():
            rows = projected(read_scan(self.context.spark(), scan), projection)
            for version, counted in _of_scan(rows, self.record.slice.last, is_new=is_new).items():
                found[version] += counted
        return found

    def _scans(self) -> list[tuple[Scan, bool | None]]:
        """Return the scans, each with whether its rows are new; None: each row says it."""
        record, key, log = self.record, self.record.slice, self.context.log
        versions = versions_compared(self.context.table, record) if record.kind is SliceKind.NET else None
        if versions is not None:
            commits = CommitRange(versions[0] + 1, versions[1], record.source_table_id)
            scans = scan_differences(log, commits)
            return [(scans.before, False), (scans.last, True)]
        commits, chunk = CommitRange(key.first, key.last, record.source_table_id), record.chunk
        part = VersionPart(chunk.first, chunk.end, table_id=record.source_table_id) if chunk else None
        is_new = None if record.kind in (SliceKind.CHANGES, SliceKind.NET) else True
        return [(scan_of(log, record.kind, commits, part), is_new)]


def _of_scan(rows: DataFrame, last: int, *, is_new: bool | None) -> dict[int, CountedRows]:
    """Count the rows of a scan by version; those of other scans than of change rows are of the version `last`."""
    if is_new is not None:
        total = int(rows.agg(F.count(F.lit(1))).collect()[0][0])
        return {last: CountedRows(new=total) if is_new else CountedRows(old=total)}
    found: dict[int, CountedRows] = {}
    for version, kind, count in rows.groupBy(COMMIT_VERSION, CHANGE_TYPE).count().collect():
        is_new_kind = kind in ("insert", _POST)
        one = CountedRows(
            new=count if is_new_kind else 0,
            old=0 if is_new_kind else count,
            preimages=count if kind == _PRE else 0,
            postimages=count if kind == _POST else 0,
        )
        found[version] = found.get(version, CountedRows()) + one
    return found


# What each check says. A slice needs all of them to land.
BLOCKING_CHECKS: Final[Mapping[str, str]] = {
    "key_presence": "Key columns exist and hold no NULL.",
    "key_uniqueness": "At most one change per key and commit.",
    "marker_values": "__rowMarker__ is the last column, int32, in {0, 1, 2, 4}; slices of inserts alone have none.",
    "parts_unchanged": "Every part is the file that was staged.",
    ROW_CONSERVATION: "The parts have the rows that the log adds and removes, and that Spark read.",
    "row_order": "Keys with several changes appear in commit order, compared with the feed.",
    "schema_compatibility": "Columns and types are those of the slice, and fit the landed columns.",
}
_ROW_CHECKS: Final = ("key_uniqueness", "marker_values", ROW_CONSERVATION, "row_order")


def blocking_checks(context: TableContext) -> tuple[str, ...]:
    """Return the checks that a slice of the table must pass, the project's own among them."""
    return (*BLOCKING_CHECKS, *(check.name for check in _own_checks(context) if check.blocking))


def _own_checks(context: TableContext) -> list[SliceCheck]:
    """Return the project's checks of the table. Raises SettingError for a name that a verdict can't have twice."""
    own = slice_checks(context.config, context.table)
    names = Counter([*BLOCKING_CHECKS, *(check.name for check in own)])
    if taken := [name for name, number in names.items() if number > 1]:
        raise CHECK_NAME_TAKEN(table=context.name, name=taken[0])
    return own


def run_checks(context: TableContext, record: SliceRecord) -> tuple[SliceRecord, tuple[CheckResult, ...]]:
    """Run all blocking checks on a staged slice; return its record with the verdicts added, and the results.

    Raises LostRace when another run has landed its generation meanwhile, and what reading its parts raises.
    """
    working = stage_span(Stage.CHECK, context.work(record.slice))
    with working, not_overtaken(context, record.epoch, record.generation, record.slice):
        set_attempt(record.attempt)
        is_first_load = record.slice.first == 0
        results = tuple(
            replace(result, next_step=_next_step(result.check, is_first_load=is_first_load))
            for result in check_staged(context, record)
        )
        has_failed = any(result.is_refusal for result in results)
        # Another run that lands this staged slice meanwhile moves its parts away: that is no failure.
        if has_failed and has_landed(context.manifest(), record.epoch, record.generation):
            raise LOST_RACE(table=record.table, key=str(record.slice))
        for result in results:
            # A skipped check has not failed, as in Dagster: one cause is one failed check.
            record_check(record.table, result.check, passed=not result.is_refusal)
        verdicts = [
            CheckVerdict(
                check=result.check,
                passed=result.passed or result.is_warning,
                etags=record.etags,
                message=result.message,
                unproved=result.unproved,
            )
            for result in results
        ]
        return add_verdicts(context.store, record, verdicts), results


def _next_step(check: str, *, is_first_load: bool) -> str:
    """Return what to do when the check has refused a slice, of which nothing was published."""
    if check == "parts_unchanged":
        return "run again: the slice is staged again; find out who else writes into the folder _scratchPad."
    if check not in BLOCKING_CHECKS:
        return "correct this check of your project, or fix the source and launch the job `rebuild` for this table."
    if check == ROW_CONSERVATION:
        return "run the job `rebuild` for this table; if the check fails again, report its message. Others continue."
    if is_first_load:
        return "fix the source; the next run then loads the table automatically. Other tables continue."
    # The slice's commits don't change: only a load of the newest version leaves them out.
    return "fix the source, then launch the job `rebuild` for this table. Other tables continue."


def require_passed(context: TableContext, record: SliceRecord, results: Sequence[CheckResult]) -> None:
    """Raise ChecksFailed unless all checks have passed."""
    if error := refusal(context, record, results):
        raise error


def refusal(context: TableContext, record: SliceRecord, results: Sequence[CheckResult]) -> ChecksFailed | None:
    """Return the error with the problems that the checks have found, or None if all have passed."""
    has_failed = any(result.is_refusal for result in results)
    return slice_checks_failed(str(context.name), record.slice, tuple(results)) if has_failed else None


def check_staged(context: TableContext, record: SliceRecord) -> tuple[CheckResult, ...]:
    """Run each blocking check on the parts as they are stored now; return the results."""
    staged = StagedSlice(context.store, record, context.staging)
    unchanged = parts_unchanged(staged)
    try:
        if context.local_staging:
            fetch_parts(context.store, context.local_staging, record)
        with reading(context, source_read(context.table, record.kind, record)):
            return (unchanged, *_with_own(context, staged, _check_content(context, staged)))
    except (pa.ArrowException, OSError, PathMissing, FILE_UNFOUND.error, SparkFailed):
        if unchanged.passed:
            raise
        return (unchanged, *_with_own(context, staged, _skipped(unchanged, BLOCKING_CHECKS)))


def _check_content(context: TableContext, staged: StagedSlice) -> tuple[CheckResult, ...]:
    """Check columns, then markers and counts, then keys, then their order: each of these needs those before it."""
    record = staged.record
    # A snapshot begins an epoch, so no columns have landed before it.
    manifest = context.manifest() if record.kind is not SliceKind.SNAPSHOT else None
    landed, dropped = (manifest.columns, manifest.dropped) if manifest else ((), ())
    results = [schema_compatibility(staged, landed, dropped), key_presence(staged)]
    if failed := next((result for result in results if not result.passed), None):
        return (*results, *_skipped(failed, _ROW_CHECKS))
    markers = marker_values(staged)
    results += [markers, check_rows(context, record)]
    if not markers.passed:
        return (*results, *_skipped(markers, ("key_uniqueness", "row_order")))

    @cache
    def commits() -> tuple[Commit, ...]:
        return context.log.commits(record.slice.first, record.slice.last)

    def rows_allowed() -> int:
        """Return the most rows that a key may have: one per commit that changes data, in a slice of changes."""
        return sum(commit.changes_data for commit in commits()) if record.kind is SliceKind.CHANGES else 1

    schema = parse_schema(record.source_schema)
    projection = table_projection(context.config, context.table, schema)
    keys = inspect_keys(staged, rows_allowed, context.spark)
    unique = key_uniqueness(keys)
    if unique.passed and record.chunk is not None and record.chunk.number == 1 and context.table.keys:
        # Two chunks may have rows of the same key. Row ids need no such check: the source has each only once.
        unique = version_uniqueness(
            context.spark(), scan_version(context.log, record.slice.last), record.keys, projection
        )
    if not unique.passed:
        return (*results, unique, *_skipped(unique, ("row_order",)))
    names = {column.name for column in record.columns}
    columns = tuple(column for column in table_columns(context.table, schema) if column.name in names)
    range_ = CommitRange(record.slice.first, record.slice.last, record.source_table_id)
    scan = cache(lambda: scan_changes(context.log, range_))
    reader = SparkChangeReader(context.spark, staged, scan, columns, projection)
    ordered = row_order(staged, keys, reader, lambda: KeyReader.of(context.log, staged, scan(), projection))
    return (*results, unique, ordered)


def _with_own(context: TableContext, staged: StagedSlice, results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """Add the results of the project's own checks, which read rows that have passed the others."""
    checks, record = _own_checks(context), staged.record
    if failed := next((result for result in results if result.problems), None):
        return (*results, *_skipped(failed, [check.name for check in checks]))
    parts = tuple(staged.copies.spark_path(path) for path in staged.paths)
    rows = StagedRows(str(context.name), str(record.slice), record.keys, parts, context.spark)
    return (*results, *(_own_result(check, rows) for check in checks))


def _own_result(check: SliceCheck, rows: StagedRows) -> CheckResult:
    """Return the result of one of the project's checks; one that raises has found a problem."""
    if not rows.parts:
        return CheckResult(check.name, note="the slice has no rows")
    try:
        problems = tuple(check.problems(rows))
    except Exception as error:  # noqa: BLE001 the project's code may raise anything, and nothing is proved then
        problems = (f"the check raised {type(error).__name__}: {error}",)
    return CheckResult(check.name, problems, is_warning=not check.blocking)


def check_rows(context: TableContext, record: SliceRecord) -> CheckResult:
    """Check that the parts have the rows of the log (`row_conservation`): once, for staging and the blocking check."""
    newest, attempt = context.newest_row_check, (record.attempt, record.etags)
    if attempt not in newest:
        newest.clear()
        newest[attempt] = row_conservation(_slice_rows(context, record), ScanCounter(context, record).count)
    return newest[attempt]


def _slice_rows(context: TableContext, record: SliceRecord) -> SliceRows:
    """Return the slice with the ledger of what it was made from."""
    log, key = context.log, record.slice
    if record.kind is SliceKind.SNAPSHOT:
        chunk = record.chunk
        return SliceRows(record, version_ledger(log, key.last, *((chunk.first, chunk.end) if chunk else ())))
    by_commit = record.kind in (SliceKind.CHANGES, SliceKind.NET) and versions_compared(context.table, record) is None
    return SliceRows(record, commits_ledger(log, key.first, key.last), by_commit)


def _skipped(because: CheckResult, checks: Iterable[str]) -> tuple[CheckResult, ...]:
    """Return the results of checks that did not run: one cause fails one check. None of them has passed either."""
    why = f"skipped: {because.check} failed"
    return tuple(CheckResult(check, skipped=why) for check in sorted(set(checks) - {because.check}))
