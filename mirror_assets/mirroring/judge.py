"""The blocking checks on a staged slice, and their verdicts in its record: write, audit, publish."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.key_look import KeyLook, look_at_keys
from mirror_assets.audit.order import row_order
from mirror_assets.audit.reread import SparkReread
from mirror_assets.audit.staged import (
    StagedSlice,
    key_presence,
    marker_values,
    parts_unchanged,
    row_counts,
    schema_compatibility,
)
from mirror_assets.audit.uniqueness import key_uniqueness, version_uniqueness
from mirror_assets.landing.format import SliceKind, SliceRecord, Verdict
from mirror_assets.landing.parts import add_verdicts, fetch_parts
from mirror_assets.mirroring.columns import landed_columns
from mirror_assets.mirroring.errors import ChecksFailed
from mirror_assets.mirroring.losses import reading, source_read
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.commits import Commit, vector_versions
from mirror_assets.source.losses import FileUnfound, SparkFailed
from mirror_assets.source.schema import parse_schema
from mirror_assets.storage import PathMissing

_ROW_CHECKS: Final = ("key_uniqueness", "marker_values", "row_counts", "row_order")
BLOCKING_CHECKS: Final = tuple(sorted(("key_presence", "parts_unchanged", "schema_compatibility", *_ROW_CHECKS)))


def judge_slice(work: TableWork, record: SliceRecord) -> tuple[SliceRecord, tuple[Finding, ...]]:
    """The record with a verdict of every blocking check, and what each found."""
    findings = staged_findings(work, record)
    verdicts = [
        Verdict(check=finding.check, passed=finding.passed, etags=record.etags, message=finding.message)
        for finding in findings
    ]
    return add_verdicts(work.store, record, verdicts), findings


def require_passed(work: TableWork, record: SliceRecord, findings: Sequence[Finding]) -> None:
    """Raises ChecksFailed with what the checks found, if any of them did."""
    error = refusal(work, record, findings)
    if error is not None:
        raise error


def refusal(work: TableWork, record: SliceRecord, findings: Sequence[Finding]) -> ChecksFailed | None:
    """The error that says what the checks found, or None if they passed."""
    failed = tuple(f"{finding.check}: {finding.message}" for finding in findings if not finding.passed)
    return ChecksFailed(str(work.name), record.key, failed) if failed else None


def staged_findings(work: TableWork, record: SliceRecord) -> tuple[Finding, ...]:
    """What each blocking check finds in the parts, as they are on disk now."""
    staged = StagedSlice(work.store, record, work.staging)
    unchanged = parts_unchanged(staged)
    try:
        if work.exchange:
            fetch_parts(work.store, work.exchange, record)
        with reading(work, source_read(work.table, record.kind, record.key)):
            return (unchanged, *_column_findings(work, staged))
    except (pa.ArrowException, OSError, PathMissing, FileUnfound, SparkFailed):
        if unchanged.passed:
            raise
        return (unchanged, *_not_run(unchanged, BLOCKING_CHECKS))


def _column_findings(work: TableWork, staged: StagedSlice) -> tuple[Finding, ...]:
    """Columns first: the other checks need them. A snapshot slice begins a life, in which nothing has landed yet."""
    manifest = work.manifest() if staged.record.kind is not SliceKind.SNAPSHOT else None
    landed, dropped = (manifest.columns, manifest.dropped) if manifest else ((), ())
    schema, presence = schema_compatibility(staged, landed, dropped), key_presence(staged)
    wrong = next((finding for finding in (schema, presence) if not finding.passed), None)
    rows = _not_run(wrong, _ROW_CHECKS) if wrong else _row_findings(work, staged)
    return (schema, presence, *rows)


def _row_findings(work: TableWork, staged: StagedSlice) -> tuple[Finding, ...]:
    """Markers first: what keys may do is told by them."""
    markers, counts = marker_values(staged), row_counts(staged)
    if not markers.passed:
        return (markers, counts, *_not_run(markers, ["key_uniqueness", "row_order"]))
    commits = _Commits(work, staged.record)
    look = look_at_keys(staged, commits.with_data)
    unique = _uniqueness(work, staged, look)
    order = (_order(work, staged, look, commits),) if unique.passed else _not_run(unique, ["row_order"])
    return (markers, counts, unique, *order)


def _uniqueness(work: TableWork, staged: StagedSlice, look: KeyLook) -> Finding:
    """A key may also be in two chunks: before the first of them lands, all keys of its version are looked at.

    A row id can't: it is in the source only once.
    """
    record = staged.record
    if record.chunk is None or record.chunk.number > 1 or not work.table.keys:
        return key_uniqueness(staged, look)
    return version_uniqueness(work.spark(), work.table.source, record.key.last, record.keys)


def _not_run(because: Finding, checks: Iterable[str]) -> tuple[Finding, ...]:
    """Checks that could say nothing sensible. They don't pass: a slice lands only when all of them have looked."""
    others = sorted(set(checks) - {because.check})
    return tuple(Finding(check, (f"not looked at: {because.check} comes first",)) for check in others)


@dataclass(frozen=True)
class _Commits:
    """The commits of a slice, read from the log when they are asked for, and then once."""

    work: TableWork
    record: SliceRecord

    @cached_property
    def all(self) -> tuple[Commit, ...]:
        return self.work.log.commits(self.record.key.first, self.record.key.last)

    def with_data(self) -> int:
        """In how many of them a key may have a row; a slice that is no range of changes counts as one."""
        if self.record.kind is not SliceKind.CHANGES:
            return 1
        return sum(commit.changes_data for commit in self.all)


def _order(work: TableWork, staged: StagedSlice, look: KeyLook, commits: _Commits) -> Finding:
    names = {column.name for column in staged.record.columns}
    schema = parse_schema(staged.record.source_schema)
    columns = landed_columns(schema, names.__contains__, keyless=work.table.is_keyless)
    reread = SparkReread(work.spark, staged, work.table.source, columns, lambda: vector_versions(commits.all))
    return row_order(staged, look, reread)
