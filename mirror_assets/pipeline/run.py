"""Mirrors a table until nothing is left: plan it, process each slice, rebuild at a break.

The path of a slice: plan (`plan.py`), stage (`stage.py`), check (`check_slice.py`), publish; `land_slice.py` puts
the steps together. Jobs and the command line come through here; Dagster's assets call the same steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from mirror_assets.config.setting_values import OnBreak
from mirror_assets.errors import RebuildError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.publish import Published
from mirror_assets.monitoring import Mirror, MonitoredTable, TableState
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import REPAIR_REFUSED, stop_error
from mirror_assets.pipeline.lag import note_covered, note_plan
from mirror_assets.pipeline.land_slice import ProcessedSlice, process_slice
from mirror_assets.pipeline.next_action import may_rebuild, note_well
from mirror_assets.pipeline.plan import SLICES_AHEAD, Boundaries, no_boundaries, plan_table, recovered
from mirror_assets.pipeline.rebuild_table import is_rebuilding, rebuild_table, wait_for
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.source.errors import SparkInterrupted
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range
from mirror_assets.telemetry.progress import expect
from mirror_assets.telemetry.record import planning

# How often a run retries a slice that Spark's own faults have interrupted.
_RETRIES = 2


RunEvent: TypeAlias = tuple[PlannedSlice, ...] | Published | ProcessedSlice
"""What a run yields: the slices that it mirrors next, the publication of a rebuild, or a slice that has landed."""


def mirror_table(
    context: TableContext,
    mirror: Mirror,
    report: Callable[[str], None],
    requested: Range = EVERYTHING,
    *,
    boundaries: Boundaries = no_boundaries,
    rebuild_because: str | None = None,
    plan_again: bool = True,
) -> Iterator[RunEvent]:
    """Mirror the table up to the source's newest version or the range's end; yield each slice, or chunk, that landed.

    Finishes an interrupted rebuild or publication first. `report` takes lines for the log. `rebuild_because` requests a
    rebuild. With `on_break: repair`, a repair replaces a rebuild where it can. Plans the table again if another
    run has landed the slice, or if Spark has interrupted a job. Without `plan_again` it ends after the slices of one
    plan, for callers that poll the table anyway. `boundaries` returns the slices that are registered.

    Raises SOURCE_BROKE at a break that must not be rebuilt, ROWS_CHANGED, ChecksFailed, RANGE_REFUSED, and what staging
    and publishing raise; the slices before the one that failed have landed.
    """
    if rebuild_because is not None or is_rebuilding(context):
        yield from _follow_break(context, mirror, report, boundaries, rebuild_because)
    retries = _RETRIES
    while True:
        try:
            if not (yield from _process_pending(context, report, boundaries, requested)) or not plan_again:
                return
        except (LostRace, SparkInterrupted) as error:
            retries -= isinstance(error, SparkInterrupted)
            if retries < 0:
                raise
            report(f"again, because {error.what}")
        except RebuildError as error:
            if not may_rebuild(context, requested):
                raise
            report(f"{context.table.on_break.value}, because {error.what}")
            yield from _follow_break(context, mirror, report, boundaries, error.what)


def _follow_break(
    context: TableContext,
    mirror: Mirror,
    report: Callable[[str], None],
    boundaries: Boundaries,
    reason: str | None,
) -> Iterator[RunEvent]:
    """Rebuild the table; or repair it, if that is its setting and can help."""
    if context.table.on_break is OnBreak.REPAIR and reason is not None and not is_rebuilding(context):
        try:
            yield from _repair(context, mirror, report, boundaries)
        except REPAIR_REFUSED.error as error:
            report(f"rebuild, because {error.what}")
        except LostRace as error:
            report(f"again, because {error.what}")
            return
        else:
            return
    yield rebuild_table(context, mirror, report, reason)


def _repair(
    context: TableContext, mirror: Mirror, report: Callable[[str], None], boundaries: Boundaries
) -> Iterator[RunEvent]:
    """Wait until the mirror has applied all landing files, and yield the repair that lands, if any."""
    found = recovered(context, boundaries)[0]
    if found is not None:
        manifest = found.manifest

        def has_applied(status: MonitoredTable | None) -> bool:
            return status is not None and (status.state is TableState.FAILED or status.has_applied(manifest))

        wait_for(mirror, context.name, has_applied, "be applied")
    repaired = repair_table(context, mirror, report)
    if repaired is None:  # planning again would meet the same break
        raise REPAIR_REFUSED(table=str(context.name), why="the mirror equals the source, and the break remains")
    yield (repaired.planned,)
    yield repaired


def _process_pending(
    context: TableContext, report: Callable[[str], None], boundaries: Boundaries, requested: Range
) -> Generator[RunEvent, None, bool]:
    """Process the slices of one plan, of the first hundred that are pending; return whether there was any."""
    with planning(str(context.name)):
        _, registered = recovered(context, boundaries)
        plan = plan_table(context, registered, requested, SLICES_AHEAD)
    note_plan(context.name, plan)
    expect(str(context.name), [planned.rows for planned in plan.slices], plan.later_rows(SLICES_AHEAD))
    yield plan.partitions
    for index, planned in enumerate(plan.slices):
        chunk = f", chunk {planned.chunk}" if planned.chunk else ""
        rows = f"{planned.rows} rows in {planned.parts} parts"
        if planned.compared:
            rows += f", from {planned.compared.files} files of {planned.compared.bytes} bytes"
        report(f"{context.name}: slice {slice_key(planned)}{chunk}, {rows}")
        processed = process_slice(context, plan, planned)
        compared = processed.record.compared
        if compared is not None and compared.because:
            report(f"{context.name}: slice {slice_key(planned)} was read by files, because {compared.because}")
        for result in processed.results:
            if result.warning:
                report(f"warning: {result.check}: {result.warning}")
        note_covered(context.name, plan, index, processed.published.manifest.covered)
        yield processed
    if plan.stop is not None:
        raise stop_error(context.name, plan.stop)
    if not plan.slices and requested.is_everything:
        note_well(context, report)
    return bool(plan.slices)
