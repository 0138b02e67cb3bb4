"""Blocking checks on staged parts: what fails here is never published (write, audit, publish)."""

from collections.abc import Iterator

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.assets.slices import parse_slices
from mirror_assets.checks.results import check_result, checking, merged
from mirror_assets.checks.runs import is_slice_run
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import SliceKey
from mirror_assets.mirroring.failures import note_failure
from mirror_assets.mirroring.judge import BLOCKING_CHECKS, judge_slice, refusal
from mirror_assets.mirroring.queue import staged_ahead
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions
from mirror_assets.verify.check_result import Finding

_DESCRIPTIONS = {
    "key_presence": "Key columns are there and hold no NULL.",
    "key_uniqueness": "At most one change per key and commit.",
    "marker_values": "__rowMarker__ is the last column, int32, in {0, 1, 2, 4}; slices of inserts alone have none.",
    "parts_unchanged": "Every part is the file that was staged.",
    "row_counts": "Every row read from the feed is accounted for in the parts.",
    "row_order": "Keys with several changes appear in commit order, compared with the feed.",
    "schema_compatibility": "Columns and types are the slice's, and fit what has landed before.",
}


def staged_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """All blocking checks of the table's staged slices, in one step: they share what they read."""
    feed = asset_key(Kind.CHANGE_FEED, table.name)
    specs = [
        dg.AssetCheckSpec(name, asset=feed, blocking=True, description=_DESCRIPTIONS[name]) for name in BLOCKING_CHECKS
    ]

    @dg.multi_asset_check(name=f"{'__'.join(feed.path)}_staged", specs=specs)
    def staged(
        context: dg.AssetCheckExecutionContext,
        landing_zone: LandingZone,
        sources: SourceTables,
        spark: SparkSessions,
    ) -> Iterator[dg.AssetCheckResult]:
        with checking():
            work = table_work(config, table, landing_zone, sources, spark)
            judged = _judge(context, work, _asked(context))
        for name in BLOCKING_CHECKS:
            yield check_result(
                feed, merged(name, [(key, f) for key, found in judged for f in found if f.check == name])
            )

    return staged


def _judge(
    context: dg.AssetCheckExecutionContext, work: TableWork, asked: set[str] | None
) -> list[tuple[str, tuple[Finding, ...]]]:
    """Findings by slice, for the staged slices that were asked for; None asks for all that could land next."""
    judged = []
    for record in staged_ahead(work):
        if asked is not None and record.slice not in asked:
            continue
        try:
            _, findings = judge_slice(work, record)
        except MirrorError as error:
            _note(context, work, asked, error, record.key)
            raise
        judged.append((record.slice, findings))
        refused = refusal(work, record, findings)
        if refused is not None:
            _note(context, work, asked, refused, record.key)
            break
    return judged


def _note(
    context: dg.AssetCheckExecutionContext,
    work: TableWork,
    asked: set[str] | None,
    error: MirrorError,
    key: SliceKey,
) -> None:
    """Count a run that was to land the slice; one of checks alone is no try."""
    if asked is not None:
        note_failure(work, error, context.log.warning, key)


def _asked(context: dg.AssetCheckExecutionContext) -> set[str] | None:
    """The run's slices, or None in a run of checks only."""
    if not is_slice_run(context):
        return None
    return {str(key) for key in parse_slices(context.partition_keys)}
