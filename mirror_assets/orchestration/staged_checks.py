"""The blocking checks of changes: one step that reads the parts of staged slices once."""

from collections.abc import Iterator, Sequence

import dagster as dg

from mirror_assets.config import Config, TableSettings
from mirror_assets.landing.names import SliceKey
from mirror_assets.orchestration.asset_checks import (
    check_result,
    checks_step,
    is_slice_run,
    log_landed_checks,
)
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.materialize import failing, failure, parse_slices
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.pipeline.check import BLOCKING_CHECKS, refusal, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.stage_range import staged_ahead
from mirror_assets.verify.check_result import CheckResult

_DESCRIPTIONS = {
    "key_presence": "Key columns are there and hold no NULL.",
    "key_uniqueness": "At most one change per key and commit.",
    "marker_values": "__rowMarker__ is the last column, int32, in {0, 1, 2, 4}; slices of inserts alone have none.",
    "parts_unchanged": "Every part is the file that was staged.",
    "row_counts": "Every row read from the feed is accounted for in the parts.",
    "row_order": "Keys with several changes appear in commit order, compared with the feed.",
    "schema_compatibility": "Columns and types are the slice's, and fit what has landed before.",
}
NOTHING_STAGED = "no staged slice waits: each was looked at before it landed"

_Checked = tuple[str, tuple[CheckResult, ...]]


def staged_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the blocking checks of staged slices.

    All of them run, whichever are selected, because a slice lands with the verdicts of all. When one fails, the step
    fails with the slice's error, and the checks of landing_zone, which the run does not reach, are evaluated here.
    """
    feed = asset_key(Kind.CHANGES, table.name)
    specs = [
        dg.AssetCheckSpec(name, asset=feed, blocking=True, description=_DESCRIPTIONS[name]) for name in BLOCKING_CHECKS
    ]

    @checks_step(feed, specs)
    def staged(
        context: dg.AssetCheckExecutionContext,
        landing_zone: LandingZone,
        sources: SourceTables,
        spark: SparkSessions,
    ) -> Iterator[dg.AssetCheckResult]:
        requested = _requested(context)
        with failing():
            table_context = project(config, landing_zone, sources, spark).table(table)
            checked, refused = _look(table_context, requested)
        selected = {key.name for key in context.selected_asset_check_keys}
        for name in BLOCKING_CHECKS:
            if name in selected:
                yield check_result(feed, merged(name, checked))
        if refused is not None:
            if requested is not None:
                log_landed_checks(context.op_execution_context, project(config, landing_zone, sources), table)
            raise failure(refused, refused.key)

    return staged


def merged(name: str, checked: Sequence[_Checked]) -> CheckResult:
    """Return one result for several slices: problems name their slice, figures add up, the slices are named."""
    results = [(key, found) for key, results in checked for found in results if found.check == name]
    if not results:
        return CheckResult(name, note=NOTHING_STAGED)
    problems = tuple(f"slice {key}: {problem}" for key, result in results for problem in result.problems)
    waiting = [f"slice {key}: {result.not_looked_at}" for key, result in results if result.not_looked_at]
    step = next((result.next_step for _, result in results if result.problems), "")
    return CheckResult(name, problems, _added(results), not_looked_at="; ".join(waiting), next_step=step)


def _added(results: Sequence[tuple[str, CheckResult]]) -> dict[str, int | float | str]:
    first, last = results[0][0], results[-1][0]
    # A number would be plotted: most runs of slices have one.
    figures: dict[str, int | float | str] = {"slice": first}
    if len(results) > 1:
        figures = {"slices": len(results), "first_slice": first, "last_slice": last}
    for _, result in results:
        for figure, value in result.figures.items():
            known = figures.get(figure, 0)
            if isinstance(value, int | float) and isinstance(known, int | float):
                figures[figure] = known + value
            elif isinstance(value, str):
                figures.setdefault(figure, value)
    return figures


def run_staged(table_context: TableContext) -> tuple[dict[str, CheckResult], ChecksFailed | None]:
    """Run the checks of all staged slices; return each check's result, and the error of a slice that may not land.

    No results where no slice is staged.
    """
    checked, refused = _look(table_context, None)
    return {name: merged(name, checked) for name in BLOCKING_CHECKS} if checked else {}, refused


def _look(table_context: TableContext, requested: set[SliceKey] | None) -> tuple[list[_Checked], ChecksFailed | None]:
    """Run the checks up to the first slice that may not land, and return why; None requests all staged slices."""
    checked: list[_Checked] = []
    for record in staged_ahead(table_context):
        if requested is not None and record.slice not in requested:
            continue
        _, results = run_checks(table_context, record)
        checked.append((str(record.slice), results))
        refused = refusal(table_context, record, results)
        if refused is not None:
            return checked, refused
    return checked, None


def _requested(context: dg.AssetCheckExecutionContext) -> set[SliceKey] | None:
    """Return the run's slices, or None in a run of checks only."""
    if not is_slice_run(context):
        return None
    return set(parse_slices(context.partition_keys))
