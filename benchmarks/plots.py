"""Pictures of how time grows: with rows, with commits, with tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import matplotlib as mpl

from benchmarks.result import Case

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

_DOTS = 120


def growth(cases: Sequence[Case], axis: str, title: str, file: Path) -> None:
    """Seconds of each way against the cases' sizes: medians as a line, every run as a dot."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for way in cases[0].ways:
        there = [case for case in cases if way in case.ways]
        (line,) = axes.plot(
            [case.size for case in there],
            [median(cost.seconds for cost in case.ways[way]) for case in there],
            marker="o",
            label=way,
        )
        for case in there:
            seconds = [cost.seconds for cost in case.ways[way]]
            axes.plot([case.size] * len(seconds), seconds, ".", color=line.get_color(), alpha=0.4)
    axes.set(xlabel=axis, ylabel="seconds", title=title, xlim=(0, None), ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=_DOTS)
    plt.close(figure)
