"""The framing effect over time: what a model keeps and loads at each framing, and the maintenance in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.framing.values import FileSum, FramingPoint
from mirror_assets.direct_lake.plots.figure import (
    CHANGED,
    DROPPED,
    KEPT,
    LOADED,
    calm,
    counted,
    new_figure,
    nothing,
    png,
)
from mirror_assets.direct_lake.plots.marks import draw_marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS, _BARS = 12, 100
_Part = Callable[[FramingPoint], FileSum]
_PARTS: tuple[tuple[str, str, _Part], ...] = (
    ("kept", KEPT, lambda point: point.effect.kept),
    ("other deletion vector", CHANGED, lambda point: point.effect.changed),
    ("to load", LOADED, lambda point: point.effect.reloaded),
)


def framing_bars(points: Sequence[FramingPoint], table: str, zone: tzinfo = timezone.utc) -> bytes:
    """A bar per framing, in rows: above the line what the version has, below it what went; marks for maintenance.

    Rows of files without statistics are not in it; the title says of how many files.
    """
    if not points:
        return nothing(f"{table}: framing effect")
    figure = new_figure(width=10, height=5)
    axes = figure.add_subplot()
    bottom = [0] * len(points)
    for name, colour, part in _PARTS:
        top = [below + part(point).known_rows for below, point in zip(bottom, points, strict=True)]
        _stacked(axes, bottom, top, colour, name)
        bottom = top
    _stacked(axes, [-point.effect.dropped.known_rows for point in points], [0] * len(points), DROPPED, "dropped")
    axes.axhline(0, color="black", linewidth=0.8)
    room = draw_marks(axes, [(place, mark.operation) for place, point in enumerate(points) for mark in point.marks])
    axes.set_title(_title(points, table), pad=6 + room)
    axes.set(xlabel="framed at version, of the day", ylabel="rows")
    _labelled(axes, points, zone)
    calm(axes)
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    return png(figure)


def _stacked(axes: Axes, bottom: Sequence[int], top: Sequence[int], colour: str, name: str) -> None:
    """Bars, or without gaps an area where there are too many of them to be told apart."""
    places = range(len(top))
    if len(top) <= _BARS:
        heights = [high - low for low, high in zip(bottom, top, strict=True)]
        axes.bar(places, heights, bottom=bottom, color=colour, label=name, width=0.9)
    else:
        axes.fill_between(places, bottom, top, step="mid", color=colour, linewidth=0, label=name)


def _title(points: Sequence[FramingPoint], table: str) -> str:
    shares = [share for point in points if (share := point.effect.reloaded_share) is not None]
    unknown = max(point.effect.total.without_rows for point in points)
    words = [f"{len(points):,} framings"]
    if shares:
        words.append(f"{sum(shares) / len(shares):.0%} of the rows to load on average")
    if unknown:
        words.append(f"up to {unknown:,} files without statistics left out")
    return f"{table}: framing effect\n{', '.join(words)}"


def _labelled(axes: Axes, points: Sequence[FramingPoint], zone: tzinfo) -> None:
    from matplotlib.ticker import FuncFormatter

    shown = range(0, len(points), math.ceil(len(points) / _LABELS))
    days = (datetime.fromtimestamp(points[place].timestamp_ms / 1000, zone) for place in shown)
    names = [f"v{points[place].effect.last}\n{day:%m-%d}" for place, day in zip(shown, days, strict=True)]
    axes.set_xticks(list(shown), names)
    axes.set_xlim(-0.6, len(points) - 0.4)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rows, _: counted(abs(rows))))
