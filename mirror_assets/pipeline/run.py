"""Mirrors a table until nothing is left: plan it, process each slice, rebuild at a break.

The way of a slice: plan (`plan.py`), stage (`stage.py`), check (`check.py`), publish (`publish.py`); `process.py` puts
the steps together. Jobs and the command line come through here; Dagster's assets call the same steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from mirror_assets.errors import RebuildError
from mirror_assets.landing.errors import LostRace
from mirror_assets.landing.publish import Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import stop_error
from mirror_assets.pipeline.plan import may_rebuild, plan_table, slice_key
from mirror_assets.pipeline.process import ProcessedSlice, process_slice
from mirror_assets.pipeline.rebuild import MirrorWait, rebuild_table
from mirror_assets.source.losses import SparkInterrupted
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import EVERYTHING, Range

# A slice that Spark's own faults have interrupted is tried again this often in a run.
_RETRIES = 2


def mirror_table(
    context: TableContext,
    wait: MirrorWait,
    report: Callable[[str], None],
    requested: Range = EVERYTHING,
    rebuilt: Callable[[Published], None] | None = None,
) -> Iterator[ProcessedSlice]:
    """Yield each slice, or chunk of one, when it has landed, up to the source's newest version or the range's end.

    An interrupted rebuild or publication is finished first. A rebuild is not among the slices; `rebuilt` receives its
    publication. When another run has landed the slice, or Spark has interrupted a job, the table is planned again.
    Raises SourceBroke at a break that must not be rebuilt, RowsChanged, ChecksFailed, RangeRefused, and what staging
    and publishing raise; the slices before the one that failed have landed.
    """

    def rebuild() -> None:
        published = rebuild_table(context, wait, report)
        if rebuilt is not None:
            rebuilt(published)

    if _is_rebuilding(context):
        rebuild()
    retries = _RETRIES
    while True:
        try:
            if not (yield from _process_pending(context, report, requested)):
                return
        except (LostRace, SparkInterrupted) as error:
            retries -= isinstance(error, SparkInterrupted)
            if retries < 0:
                raise
            report(f"again, because {error.what}")
        except RebuildError as error:
            if not may_rebuild(context, requested):
                raise
            report(f"rebuild, because {error.what}")
            rebuild()


def _is_rebuilding(context: TableContext) -> bool:
    """Return whether a rebuild or a drop was begun and has not ended."""
    running = drive(read_rebuild(context.name), context.store)
    return running is not None and running.is_running


def _process_pending(
    context: TableContext, report: Callable[[str], None], requested: Range
) -> Generator[ProcessedSlice, None, bool]:
    """Process every slice of one plan; return whether there was any."""
    drive(recover(context.name), context.store)
    plan = plan_table(context, requested=requested)
    for planned in plan.slices:
        report(f"{context.name}: {_described(planned)}")
        yield process_slice(context, plan, planned)
    if plan.stop is not None:
        raise stop_error(context.name, plan.stop)
    return bool(plan.slices)


def _described(planned: PlannedSlice) -> str:
    chunk = f", chunk {planned.chunk}" if planned.chunk else ""
    return f"slice {slice_key(planned)}{chunk}, {planned.rows} rows in {planned.parts} parts"
