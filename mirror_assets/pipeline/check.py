"""Run the blocking checks on a staged slice and record their verdicts: write, audit, publish."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from mirror_assets.landing.format import SliceKind, SliceRecord, Verdict
from mirror_assets.landing.staged_parts import add_verdicts, fetch_parts
from mirror_assets.pipeline.context import TableContext, not_overtaken, reading, source_read
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.source_check import landed_columns
from mirror_assets.source.commits import Commit, vector_versions
from mirror_assets.source.losses import FileUnfound, SparkFailed
from mirror_assets.source.schema import parse_schema
from mirror_assets.storage import PathMissing
from mirror_assets.telemetry.instruments import Stage
from mirror_assets.telemetry.record import record_check, set_attempt, stage_span
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.order import SparkChangeReader, row_order
from mirror_assets.verify.staged import (
    StagedSlice,
    key_presence,
    marker_values,
    parts_unchanged,
    row_counts,
    schema_compatibility,
)
from mirror_assets.verify.uniqueness import KeyInspection, inspect_keys, key_uniqueness, version_uniqueness

_ROW_CHECKS: Final = ("key_uniqueness", "marker_values", "row_counts", "row_order")
BLOCKING_CHECKS: Final = tuple(sorted(("key_presence", "parts_unchanged", "schema_compatibility", *_ROW_CHECKS)))


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
        for result in results:
            # A skipped check has not failed, as in Dagster: one cause is one failed check.
            record_check(record.table, result.check, passed=not result.problems)
        verdicts = [
            Verdict(check=result.check, passed=result.passed, etags=record.etags, message=result.message)
            for result in results
        ]
        return add_verdicts(context.store, record, verdicts), results


def _next_step(check: str, *, is_first_load: bool) -> str:
    """Return what to do when the check has refused a slice, of which nothing was published."""
    if check == "parts_unchanged":
        return "run again: the slice is staged again; find out who else writes into the folder _scratchPad."
    if is_first_load:
        return "fix the source; the next run then loads the table automatically. Other tables continue."
    # The slice's commits don't change: only a load of the newest version leaves them out.
    return "fix the source, then launch the job `rebuild` for this table. Other tables continue."


def require_passed(context: TableContext, record: SliceRecord, results: Sequence[CheckResult]) -> None:
    """Raise ChecksFailed unless all checks have passed."""
    error = refusal(context, record, results)
    if error is not None:
        raise error


def refusal(context: TableContext, record: SliceRecord, results: Sequence[CheckResult]) -> ChecksFailed | None:
    """Return the error with the problems that the checks have found, or None if all have passed."""
    if not any(result.problems for result in results):
        return None
    return ChecksFailed(str(context.name), record.slice, tuple(results))


def check_staged(context: TableContext, record: SliceRecord) -> tuple[CheckResult, ...]:
    """Run each blocking check on the parts as they are stored now; return the results."""
    staged = StagedSlice(context.store, record, context.staging)
    unchanged = parts_unchanged(staged)
    try:
        if context.local_staging:
            fetch_parts(context.store, context.local_staging, record)
        with reading(context, source_read(context.table, record.kind, record.slice)):
            return (unchanged, *_check_columns(context, staged))
    except (pa.ArrowException, OSError, PathMissing, FileUnfound, SparkFailed):
        if unchanged.passed:
            raise
        return (unchanged, *_not_run(unchanged, BLOCKING_CHECKS))


def _check_columns(context: TableContext, staged: StagedSlice) -> tuple[CheckResult, ...]:
    """Check the columns, then the rows. A snapshot begins an epoch, so no columns have landed before it."""
    manifest = context.manifest() if staged.record.kind is not SliceKind.SNAPSHOT else None
    landed, dropped = (manifest.columns, manifest.dropped) if manifest else ((), ())
    schema, presence = schema_compatibility(staged, landed, dropped), key_presence(staged)
    wrong = next((result for result in (schema, presence) if not result.passed), None)
    rows = _not_run(wrong, _ROW_CHECKS) if wrong else _check_rows(context, staged)
    return (schema, presence, *rows)


def _check_rows(context: TableContext, staged: StagedSlice) -> tuple[CheckResult, ...]:
    """Check markers and counts, then keys and order, which need valid markers."""
    markers, counts = marker_values(staged), row_counts(staged)
    if not markers.passed:
        return (markers, counts, *_not_run(markers, ["key_uniqueness", "row_order"]))
    commits = _Commits(context, staged.record)
    inspection = inspect_keys(staged, commits.with_data)
    unique = _uniqueness(context, staged, inspection)
    order = (_order(context, staged, inspection, commits),) if unique.passed else _not_run(unique, ["row_order"])
    return (markers, counts, unique, *order)


def _uniqueness(context: TableContext, staged: StagedSlice, inspection: KeyInspection) -> CheckResult:
    """Check keys for duplicates in the parts; for the first chunk of a snapshot, in the whole version of the source.

    Two chunks may have rows of the same key. Row ids need no such check: the source has each only once.
    """
    record = staged.record
    if record.chunk is None or record.chunk.number > 1 or not context.table.keys:
        return key_uniqueness(inspection)
    return version_uniqueness(context.spark(), context.source, record.slice.last, record.keys)


def _not_run(because: CheckResult, checks: Iterable[str]) -> tuple[CheckResult, ...]:
    """Return the results of checks that did not run: one cause fails one check. None of them has passed either."""
    why = f"skipped: {because.check} failed"
    return tuple(CheckResult(check, not_looked_at=why) for check in sorted(set(checks) - {because.check}))


@dataclass(frozen=True)
class _Commits:
    """The commits of a slice, read from the log once, when they are first needed."""

    context: TableContext
    record: SliceRecord

    @cached_property
    def all(self) -> tuple[Commit, ...]:
        return self.context.log.commits(self.record.slice.first, self.record.slice.last)

    def with_data(self) -> int:
        """Return the number of commits that change data, the most rows a key may have; 1 for other kinds of slices."""
        if self.record.kind is not SliceKind.CHANGES:
            return 1
        return sum(commit.changes_data for commit in self.all)


def _order(context: TableContext, staged: StagedSlice, inspection: KeyInspection, commits: _Commits) -> CheckResult:
    names = {column.name for column in staged.record.columns}
    schema = parse_schema(staged.record.source_schema)
    columns = landed_columns(schema, names.__contains__, keyless=context.table.is_keyless)
    reader = SparkChangeReader(context.spark, staged, context.source, columns, lambda: vector_versions(commits.all))
    return row_order(staged, inspection, reader)
