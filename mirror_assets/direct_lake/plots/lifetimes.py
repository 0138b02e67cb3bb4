"""Which file was in the table when: a line per file (Gantt)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.framing.values import FileLifetime, Mark
from mirror_assets.direct_lake.plots.figure import CHANGED, DROPPED, KEPT, new_figure, nothing, png, sized
from mirror_assets.direct_lake.plots.marks import draw_marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More lines than that are a grey surface.
_MOST = 400
_POINTS = 72.0


def lifetime_chart(
    lifetimes: Sequence[FileLifetime], first: int, last: int, table: str, marks: Sequence[Mark] = ()
) -> bytes:
    """A line per file over the versions from `first` to `last`, thicker for larger files, oldest on top.

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
    axes.set_title(_title(lifetimes, shown, table), pad=6 + room)
    axes.set(xlabel="version", ylabel="files, oldest on top")
    axes.set_xlim(first - 0.5, last + 0.5)
    axes.set_ylim(len(shown) + 0.5, -1.5)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=8, frameon=False)
    return png(figure)


def _draw(axes: Axes, shown: Sequence[FileLifetime], versions: tuple[int, int], room: float) -> None:
    """A line per file; `room` is how many points lie between two of them."""
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


def _title(lifetimes: Sequence[FileLifetime], shown: Sequence[FileLifetime], table: str) -> str:
    living = [life for life in lifetimes if life.removed is None]
    gone = sum(life.bytes for life in lifetimes) - sum(life.bytes for life in living)
    words = [
        f"{len(living):,} of {len(lifetimes):,} files still there",
        f"{sized(sum(life.bytes for life in living))} live, {sized(gone)} removed",
    ]
    if len(shown) < len(lifetimes):
        words.append(f"the {len(shown):,} largest are drawn")
    return f"{table}: lifetimes of files\n{', '.join(words)}"
