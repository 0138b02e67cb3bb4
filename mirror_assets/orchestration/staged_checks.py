"""The blocking checks of staged slices. They read the parts once, and a slice needs all of them to land."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.feature import slice_checks
from mirror_assets.landing.format import Manifest, SliceRecord
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.partitions import as_slice
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.pipeline.check_slice import BLOCKING_CHECKS, refusal, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.stage_range import staged_ahead
from mirror_assets.verify.check_result import CheckResult

_DESCRIPTIONS = {
    "key_presence": "Key columns exist and hold no NULL.",
    "key_uniqueness": "At most one change per key and commit.",
    "marker_values": "__rowMarker__ is the last column, int32, in {0, 1, 2, 4}; slices of inserts alone have none.",
    "parts_unchanged": "Every part is the file that was staged.",
    "row_conservation": "The parts have the rows that the log adds and removes, and that Spark read.",
    "row_order": "Keys with several changes appear in commit order, compared with the feed.",
    "schema_compatibility": "Columns and types are those of the slice, and fit the landed columns.",
}
NOTHING_STAGED = "no staged slice waits: each was checked before it landed"


def check_slices(
    context: TableContext, staged: Iterable[SliceRecord]
) -> tuple[dict[str, CheckResult], ChecksFailed | None]:
    """Check these staged slices, up to the first that may not land.

    Returns one result per check, which names the slices, and the error of the slice that may not land.
    """
    checked: list[tuple[str, tuple[CheckResult, ...]]] = []
    refused: ChecksFailed | None = None
    for record in staged:
        _, results = run_checks(context, record)
        checked.append((str(record.slice), results))
        refused = refusal(context, record, results)
        if refused is not None:
            break
    names = [check.name for check in staged_checks(context.config, context.table)]
    return {name: merged(name, checked) for name in names}, refused


def merged(name: str, checked: Sequence[tuple[str, Sequence[CheckResult]]]) -> CheckResult:
    """Return one result for several slices: texts name their slice, statistics are added, the slices are named."""
    results = [(key, found) for key, results in checked for found in results if found.check == name]
    if not results:
        return CheckResult(name, note=NOTHING_STAGED)
    first, last = results[0][0], results[-1][0]
    # A number would be plotted, and most runs of slices have one slice.
    metadata: dict[str, int | float | str] = {"slice": first}
    if len(results) > 1:
        metadata = {"slices": len(results), "first_slice": first, "last_slice": last}
    for _, result in results:
        for figure, value in result.metadata.items():
            sum_so_far = metadata.get(figure, 0)
            if isinstance(value, int | float) and isinstance(sum_so_far, int | float):
                metadata[figure] = sum_so_far + value
            elif isinstance(value, str):
                metadata.setdefault(figure, value)
    problems = tuple(f"slice {key}: {problem}" for key, result in results for problem in result.problems)
    skipped = "; ".join(f"slice {key}: {result.skipped}" for key, result in results if result.skipped)
    step = next((result.next_step for _, result in results if result.problems), "")
    warning = "; ".join(f"slice {key}: {result.warning}" for key, result in results if result.warning)
    is_warning = bool(problems) and not any(result.is_refusal for _, result in results)
    return CheckResult(
        name, problems, metadata, is_warning=is_warning, skipped=skipped, next_step=step, warning=warning
    )


def _run(name: str, checked: CheckedTable) -> CheckResult | None:
    """Check the staged slices; without Spark, only resolve a failure whose slice has landed since, or can't any more.

    A run that ended without a result counts as a failure. Returns None if no slice is staged and none is recorded.
    """
    if checked.with_spark and checked.share(_staged):
        return checked.share(_results)[name]
    key = dg.AssetCheckKey(checked.assets.key(AssetKind.CHANGES, checked.table.name), name)
    recorded = checked.share(_recorded)
    if recorded.is_abandoned(key) and not checked.share(_staged):
        return CheckResult(name, note=NOTHING_STAGED)
    last = recorded.last(key)
    if last is None or last.passed or checked.share(_staged):
        return None
    return CheckResult(name, note=NOTHING_STAGED) if _is_past(last, checked.context.manifest()) else None


def _recorded(checked: CheckedTable) -> RecordedChecks:
    checks = staged_checks(checked.composed.config, checked.table)
    keys = [check.key(checked.assets, checked.table.name) for check in checks]
    return RecordedChecks(checked.instance, keys)


def _staged(checked: CheckedTable) -> tuple[SliceRecord, ...]:
    return staged_ahead(checked.context)


def _results(checked: CheckedTable) -> dict[str, CheckResult]:
    return check_slices(checked.context, checked.share(_staged))[0]


def _is_past(failed: dg.AssetCheckEvaluation, manifest: Manifest | None) -> bool:
    """Return whether the slice that failed has landed since, or can't land any more."""
    named = failed.metadata.get("last_slice") or failed.metadata.get("slice")
    if not isinstance(named, dg.TextMetadataValue):
        return True
    key = as_slice(str(named.value))
    return manifest is not None and (key is None or manifest.epoch > key.epoch or manifest.covered >= key.last)


STAGED_CHECKS = tuple(
    Check(name, AssetKind.CHANGES, _DESCRIPTIONS[name], partial(_run, name), blocking=True) for name in BLOCKING_CHECKS
)


def staged_checks(config: Config, table: TableSettings) -> list[Check]:
    """Return the checks of the table's staged slices, the project's own among them."""
    return [*STAGED_CHECKS, *own_staged_checks(config, table)]


def own_staged_checks(config: Config, table: TableSettings) -> list[Check]:
    """Return the project's own checks of the table's staged slices."""
    return [
        Check(
            check.name,
            AssetKind.CHANGES,
            check.description,
            partial(_run, check.name),
            blocking=check.blocking,
            section="your-own-checks",
        )
        for check in slice_checks(config, table)
    ]
