"""What framing keeps and loads over time, and which file was in the table when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.framing import FramingPoint
from mirror_assets.direct_lake.log_history import FileLifetime, Mark
from mirror_assets.direct_lake.plots.figure import (
    CHANGED,
    DROPPED,
    KEPT,
    LOADED,
    calm,
    counted,
    draw_marks,
    new_figure,
    nothing,
    png,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS, _BARS = 12, 100
# More lines than that are a grey surface.
_MOST = 400
_POINTS = 72.0


def framing_bars(points: Sequence[FramingPoint], table: str) -> bytes:
    """Draw a bar per framing, in rows: above the line what the version has, below it what was dropped; with marks.

    Rows of files without statistics are left out; the title counts these files.
    """
    if not points:
        return nothing(f"{table}: framing effect")
    figure = new_figure(width=10, height=5)
    axes = figure.add_subplot()
    bottom = [0] * len(points)
    for name, colour, sums in (
        ("kept", KEPT, [point.effect.kept for point in points]),
        ("other deletion vector", CHANGED, [point.effect.changed for point in points]),
        ("to load", LOADED, [point.effect.reloaded for point in points]),
    ):
        top = [below + some.known_rows for below, some in zip(bottom, sums, strict=True)]
        _stacked(axes, bottom, top, colour, name)
        bottom = top
    _stacked(axes, [-point.effect.dropped.known_rows for point in points], [0] * len(points), DROPPED, "dropped")
    axes.axhline(0, color="black", linewidth=0.8)
    room = draw_marks(axes, [(place, mark.operation) for place, point in enumerate(points) for mark in point.marks])
    axes.set_title(_framing_title(points, table), pad=6 + room)
    axes.set(xlabel="framed at version, of the day", ylabel="rows")
    _labelled(axes, points)
    calm(axes)
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    return png(figure)


def _stacked(axes: Axes, bottom: Sequence[int], top: Sequence[int], colour: str, name: str) -> None:
    """Draw bars, or one area where there are too many bars to tell apart."""
    places = range(len(top))
    if len(top) <= _BARS:
        heights = [high - low for low, high in zip(bottom, top, strict=True)]
        axes.bar(places, heights, bottom=bottom, color=colour, label=name, width=0.9)
    else:
        axes.fill_between(places, bottom, top, step="mid", color=colour, linewidth=0, label=name)


def _framing_title(points: Sequence[FramingPoint], table: str) -> str:
    shares = [share for point in points if (share := point.effect.reloaded_share) is not None]
    unknown = max(point.effect.total.without_rows for point in points)
    words = [f"{len(points):,} framings"]
    if shares:
        words.append(f"{sum(shares) / len(shares):.0%} of the rows to load on average")
    if unknown:
        words.append(f"up to {unknown:,} files without statistics left out")
    return f"{table}: framing effect\n{', '.join(words)}"


def _labelled(axes: Axes, points: Sequence[FramingPoint]) -> None:
    from matplotlib.ticker import FuncFormatter

    shown = range(0, len(points), math.ceil(len(points) / _LABELS))
    days = (datetime.fromtimestamp(points[place].timestamp_ms / 1000, timezone.utc) for place in shown)
    names = [f"v{points[place].effect.last}\n{day:%m-%d}" for place, day in zip(shown, days, strict=True)]
    axes.set_xticks(list(shown), names)
    axes.set_xlim(-0.6, len(points) - 0.4)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rows, _: counted(abs(rows))))


def lifetime_chart(
    lifetimes: Sequence[FileLifetime], first: int, last: int, table: str, marks: Sequence[Mark] = ()
) -> bytes:
    """Draw a line per file over the versions from `first` to `last`, thicker for larger files, oldest on top.

    Of very many files only the largest are drawn; the title says so.
    """
    if not lifetimes:
        return nothing(f"{table}: lifetimes of files")
    largest = set(sorted(lifetimes, key=lambda life: life.bytes, reverse=True)[:_MOST])
    shown = [life for life in lifetimes if life in largest]
    from matplotlib.ticker import MaxNLocator

    height = min(9.0, 2.6 + 0.16 * len(shown))
    figure = new_figure(width=10, height=height)
    axes = figure.add_subplot()
    _draw(axes, shown, (first, last), _POINTS * (height - 1.8) / len(shown))
    room = draw_marks(axes, [(mark.version, mark.operation) for mark in marks])
    axes.set_title(_lifetimes_title(lifetimes, shown, table), pad=6 + room)
    axes.set(xlabel="version", ylabel="files, oldest on top")
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.set_ylim(len(shown) + 0.5, -1.5)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    return png(figure)


def _draw(axes: Axes, shown: Sequence[FileLifetime], versions: tuple[int, int], room: float) -> None:
    """Draw a line per file; `room` is the distance of two lines in points."""
    first, last = versions
    thickest = min(6.0, 0.8 * room)
    largest = max(life.bytes for life in shown) or 1
    for living, colour, name in ((True, KEPT, "still there"), (False, DROPPED, "removed")):
        some = [(row, life) for row, life in enumerate(shown) if (life.removed is None) is living]
        if not some:
            continue
        axes.hlines(
            [row for row, _ in some],
            [first - 0.5 if life.added is None else life.added for _, life in some],
            [last + 0.5 if life.removed is None else life.removed for _, life in some],
            colors=colour,
            linewidths=[thickest * (0.25 + 0.75 * (life.bytes / largest) ** 0.5) for _, life in some],
            label=name,
        )
    changes = [(version, row) for row, life in enumerate(shown) for version in life.changes]
    if changes:
        changed, rows = zip(*changes, strict=True)
        axes.plot(changed, rows, "D", color=CHANGED, markersize=4, label="other deletion vector")


def _lifetimes_title(lifetimes: Sequence[FileLifetime], shown: Sequence[FileLifetime], table: str) -> str:
    living = [life for life in lifetimes if life.removed is None]
    gone = sum(life.bytes for life in lifetimes) - sum(life.bytes for life in living)
    words = [
        f"{len(living):,} of {len(lifetimes):,} files still there",
        f"{sized(sum(life.bytes for life in living))} live, {sized(gone)} removed",
    ]
    if len(shown) < len(lifetimes):
        words.append(f"the {len(shown):,} largest are drawn")
    return f"{table}: lifetimes of files\n{', '.join(words)}"
