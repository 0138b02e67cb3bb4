"""A table's pictures as PNG, by name. All raise PlotsMissing where matplotlib is not installed."""

from __future__ import annotations

from itertools import accumulate

from mirror_assets.direct_lake.framing import framing_series
from mirror_assets.direct_lake.guardrails.capacity_fit import fit_all
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import SKUS
from mirror_assets.direct_lake.log_history import file_lifetimes
from mirror_assets.direct_lake.plots.framing_plots import framing_bars, lifetime_chart
from mirror_assets.direct_lake.plots.guardrail_plots import CapacityLimit, GrowthCurve, growth_chart, headroom_bars
from mirror_assets.direct_lake.plots.histograms import file_size_histogram, row_group_histogram
from mirror_assets.direct_lake.table_snapshot import TableSnapshot

Pictures = dict[str, bytes]


def guardrail_pictures(figures: TableFigures) -> Pictures:
    """Draw how much of each capacity's limits the table uses."""
    return {"use_of_limits": headroom_bars(fit_all([figures]), figures.table)}


def growth_pictures(table: TableSnapshot) -> Pictures:
    """Draw the number of files over the last days, and when it reaches the next capacity's limit."""
    history, growth = table.history, table.guardrails.table.figures.growth
    changes = (len(commit.added) - len(commit.removed) for commit in history.commits)
    files = accumulate(changes, initial=len(history.start.files))
    times = (history.time_ms(version) for version in history.every_version())
    curve = GrowthCurve("files", tuple(zip(times, files, strict=True)), growth.files if growth else None)
    return {"growth": growth_chart(curve, [CapacityLimit(sku.name, sku.files) for sku in SKUS], table.name)}


def layout_pictures(table: TableSnapshot) -> Pictures:
    """Draw how large files and row groups are."""
    return {
        "row_groups": row_group_histogram([group.rows for group in table.footers.row_groups], table.name),
        "files": file_size_histogram([file.bytes for file in table.footers.files], table.name),
    }


def framing_pictures(table: TableSnapshot) -> Pictures:
    """Draw what each version of the last days has a model load, and how long files stay; with marks of maintenance."""
    history = table.history
    points = framing_series(history, history.every_version())
    marks = history.marks(history.first, history.last)
    return {
        "framing": framing_bars(points, table.name),
        "lifetimes": lifetime_chart(file_lifetimes(history), history.first, history.last, table.name, marks),
    }
