"""Pictures of growth, on logarithmic axes: a line as steep as the diagonal is linear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from benchmarks.curve import Curve
from benchmarks.result import Case

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

_DOTS = 120
_MEBI = 1 << 20
# A panel for each unit: the measures on it, their names there, and what one of the unit is.
_PANELS: Mapping[str, tuple[Mapping[str, str], float]] = {
    "seconds": ({"seconds": "time", "cpu_seconds": "processors"}, 1),
    "MiB": (
        {"python": "Python, added", "driver_heap": "driver's heap", "executor_heap": "largest executor's heap"},
        _MEBI,
    ),
    "number": ({"widest": "tasks of the widest stage", "threads": "Python threads"}, 1),
}


def growth_picture(curve: Curve, file: Path) -> None:
    """Draw each measure of the curve, with its slope."""
    panels = {unit: panel for unit, panel in _PANELS.items() if panel[0].keys() & set(curve.measures)}
    figure, rows = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.6), layout="constrained", squeeze=False)
    for axes, (unit, (names, scale)) in zip(rows[0], panels.items(), strict=True):
        for measure in [name for name in names if name in curve.measures]:
            points = [(point.size, getattr(point, measure) / scale) for point in curve.points]
            slope = curve.slope(measure)
            label = names[measure] if slope is None else f"{names[measure]}, slope {slope:.2f}"
            axes.plot(*zip(*[pair for pair in points if pair[1]], strict=True), marker="o", label=label)
        _on_logarithms(axes, curve.axis, unit, [point.size for point in curve.points])
    figure.suptitle(curve.name)
    figure.savefig(file, dpi=_DOTS)
    plt.close(figure)


def slice_picture(cases: Sequence[Case], file: Path) -> None:
    """Draw the seconds of each way against the cases' sizes: medians as a line, every run as a dot."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for way in cases[0].ways:
        (line,) = axes.plot([case.size for case in cases], [case.seconds(way) for case in cases], marker="o", label=way)
        for case in cases:
            seconds = [cost.seconds for cost in case.ways[way]]
            axes.plot([case.size] * len(seconds), seconds, ".", color=line.get_color(), alpha=0.4)
    _on_logarithms(axes, "rows of the feed", "seconds", [case.size for case in cases])
    figure.suptitle("Time against rows of the feed")
    figure.savefig(file, dpi=_DOTS)
    plt.close(figure)


def _on_logarithms(axes: Axes, axis: str, unit: str, sizes: Sequence[int]) -> None:
    axes.set(xlabel=axis, ylabel=unit, xscale="log", yscale="log")
    axes.set_xticks(sizes, [_short(size) for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    low, high = axes.get_ylim()
    # A flat line is to look flat.
    axes.set_ylim(low / 2, high * 2)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


def _short(size: int) -> str:
    """Return the number with its unit, such as 250k."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return f"{size}"
