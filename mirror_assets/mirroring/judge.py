"""The blocking checks on a staged slice, and their verdicts in its record: write, audit, publish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mirror_assets.audit.finding import Finding
from mirror_assets.audit.order import Feed, key_uniqueness, repeated_keys, row_order
from mirror_assets.audit.staged import StagedSlice, key_presence, marker_values, row_counts, schema_compatibility
from mirror_assets.delta.schema import parse_schema
from mirror_assets.landing.format import SliceKind, SliceRecord, Verdict
from mirror_assets.landing.parts import add_verdicts
from mirror_assets.mirroring.columns import landed_columns
from mirror_assets.mirroring.work import TableWork

BLOCKING_CHECKS: Final = (
    "key_presence",
    "key_uniqueness",
    "marker_values",
    "row_counts",
    "row_order",
    "schema_compatibility",
)


def judge_slice(work: TableWork, record: SliceRecord) -> tuple[SliceRecord, tuple[Finding, ...]]:
    """The record with a verdict of every blocking check, and what each found."""
    findings = staged_findings(work, record)
    verdicts = [
        Verdict(check=finding.check, passed=finding.passed, etags=record.etags, message=finding.message)
        for finding in findings
    ]
    return add_verdicts(work.store, work.name, record, verdicts), findings


def staged_findings(work: TableWork, record: SliceRecord) -> tuple[Finding, ...]:
    """What each blocking check finds in the parts, as they are on disk now. Columns first: order needs them."""
    staged = StagedSlice(work.store, work.name, record)
    manifest = work.manifest()
    landed = manifest.columns if manifest and manifest.life == record.life else ()
    schema = schema_compatibility(staged, landed)
    presence = key_presence(staged)
    if not (schema.passed and presence.passed):
        return (presence, schema, *_not_run(("key_uniqueness", "marker_values", "row_counts", "row_order")))
    repeated = repeated_keys(staged)
    feed = _feed(work, record, repeats=len(repeated) > 0)
    unique, markers = key_uniqueness(staged, repeated, feed), marker_values(staged)
    comparable = unique.passed and markers.passed and len(repeated) > 0
    order = row_order(work.spark() if comparable else None, staged, repeated, feed)
    return (presence, schema, unique, markers, row_counts(staged), order)


def _not_run(checks: Iterable[str]) -> tuple[Finding, ...]:
    return tuple(Finding(check, ("not looked at: the parts' columns are wrong",)) for check in checks)


def _feed(work: TableWork, record: SliceRecord, *, repeats: bool) -> Feed:
    """Where the feed is read again; the log is asked only when a key is repeated."""
    key = record.key
    asked = repeats and record.kind is SliceKind.CHANGES
    commits = work.log.commits(key.first, key.last) if asked else ()
    return Feed(
        work.table.source,
        landed_columns(parse_schema(record.source_schema)),
        data_commits=sum(commit.changes_data for commit in commits),
        vector_versions=tuple(commit.version for commit in commits if commit.deletion_vectors),
    )
