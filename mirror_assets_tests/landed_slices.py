"""Mirrors a table for tests that only need the slices that land."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mirror_assets.monitoring import Mirror
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.run import mirror_table


def landed_slices(
    context: TableContext, mirror: Mirror, report: Callable[[str], None] = lambda _: None
) -> Iterator[ProcessedSlice]:
    """Mirror until nothing is left; yield each slice, or chunk of one, and report the lines of the run."""
    for event in mirror_table(context, mirror, report):
        if isinstance(event, ProcessedSlice):
            yield event
