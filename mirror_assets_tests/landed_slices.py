"""Mirrors a table for tests that only need the slices that land."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.rebuild_table import MirrorWait
from mirror_assets.pipeline.run import mirror_table


def landed_slices(
    context: TableContext, wait: MirrorWait, report: Callable[[str], None] = lambda _: None
) -> Iterator[ProcessedSlice]:
    """Mirror until nothing is left; yield each slice, or chunk of one, and report the lines of the run."""
    for event in mirror_table(context, wait, report):
        if isinstance(event, str):
            report(event)
        elif isinstance(event, ProcessedSlice):
            yield event
