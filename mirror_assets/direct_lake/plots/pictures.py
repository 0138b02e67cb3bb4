"""A table's pictures as PNG, by name. All raise PlotsMissing where matplotlib is not installed."""

from __future__ import annotations

from itertools import accumulate

from mirror_assets.direct_lake.framing import framing_series
from mirror_assets.direct_lake.guardrails import capacity_fit as fit
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import SKUS
from mirror_assets.direct_lake.log_history import file_lifetimes
from mirror_assets.direct_lake.plots.framing_plots import framing_bars, lifetime_chart
from mirror_assets.direct_lake.plots.guardrail_plots import Growth, Limit, LimitUse, Sample, growth_chart, headroom_bars
from mirror_assets.direct_lake.plots.histograms import file_size_histogram, row_group_histogram
from mirror_assets.direct_lake.table_snapshot import TableSnapshot

Pictures = dict[str, bytes]


def guardrail_pictures(figures: TableFigures) -> Pictures:
    """How much of each capacity's limits the table uses."""
    uses = [
        LimitUse(found.sku.name, use.limit.value, use.used, use.allowed, in_bytes=use.limit is fit.Limit.MODEL_BYTES)
        for found in fit.fit_all([figures])
        for use in found.uses
        if use.used is not None
    ]
    return {"use_of_limits": headroom_bars(uses, figures.table)}


def growth_pictures(look: TableSnapshot) -> Pictures:
    """The number of files over the last days, and when it reaches the next capacity's limit."""
    history, growth = look.history, look.guardrails.table.figures.growth
    changes = (len(commit.added) - len(commit.removed) for commit in history.commits)
    files = accumulate(changes, initial=len(history.start.files))
    times = (history.time_ms(version) for version in history.every_version())
    samples = tuple(Sample(time_ms, amount) for time_ms, amount in zip(times, files, strict=True))
    limits = [Limit(sku.name, sku.files) for sku in SKUS]
    return {"growth": growth_chart(Growth("files", samples, growth.files if growth else None), limits, look.name)}


def layout_pictures(look: TableSnapshot) -> Pictures:
    """How large files and row groups are."""
    return {
        "row_groups": row_group_histogram([group.rows for group in look.footers.row_groups], look.name),
        "files": file_size_histogram([file.bytes for file in look.footers.files], look.name),
    }


def framing_pictures(look: TableSnapshot) -> Pictures:
    """What each version of the last days has a model load, and how long files stay; with marks of maintenance."""
    history = look.history
    points = framing_series(history, history.every_version())
    marks = history.marks(history.first, history.last)
    return {
        "framing": framing_bars(points, look.name),
        "lifetimes": lifetime_chart(file_lifetimes(history), history.first, history.last, look.name, marks),
    }
