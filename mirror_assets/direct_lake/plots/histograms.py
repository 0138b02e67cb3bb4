"""How large row groups and files are, beside what Direct Lake reads well (reference `direct-lake` §4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.plots.figure import BAND, INK, KEPT, calm, counted, new_figure, png, sized
from mirror_assets.direct_lake.table_layout import GB, MB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MILLION = 1_000_000
_LABELS = 9


@dataclass(frozen=True)
class _Scale:
    """An axis of doubling bins with edges at `small` and where `good` begins, the band that is aimed at."""

    things: str
    axis: str
    written: Callable[[float], str]
    good: tuple[float, float]
    small: float


_ROW_GROUPS = _Scale("row groups", "rows in the row group", counted, (_MILLION, 16 * _MILLION), _MILLION)
_FILES = _Scale("files", "size of the file", sized, (400 * MB, GB), 25 * MB)


def row_group_histogram(rows: Sequence[int], table: str) -> bytes:
    """Draw row groups by their number of rows, with the band of 1 to 16 million that Fabric's documentation gives."""
    return _histogram(rows, _ROW_GROUPS, f"{table}: rows in row groups")


def file_size_histogram(sizes: Sequence[int], table: str) -> bytes:
    """Draw files by their bytes, with the band of 400 MB to 1 GB; below 25 MB a table counts as fragmented."""
    return _histogram(sizes, _FILES, f"{table}: sizes of files")


def _histogram(amounts: Sequence[int], scale: _Scale, title: str) -> bytes:
    figure = new_figure()
    axes = figure.add_subplot()
    shown = [max(amount, 1) for amount in amounts]
    edges = _doubling(shown, scale)
    aimed_at, small = " to ".join(map(scale.written, scale.good)), scale.written(scale.small)
    axes.axvspan(*scale.good, color=BAND, alpha=0.15, label=f"aimed at: {aimed_at}")
    axes.axvline(scale.small, color=INK, linestyle=":", linewidth=1.2, label=f"small: below {small}")
    axes.hist(shown, bins=edges, color=KEPT, edgecolor="white", linewidth=0.5)
    axes.set(xlabel=scale.axis, ylabel=scale.things, title=f"{title}\n{_summary(amounts, scale)}")
    _scaled(axes, edges, scale)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    calm(axes)
    return png(figure)


def _doubling(shown: Sequence[int], scale: _Scale) -> list[float]:
    """Edges of bins, each twice the one before, over all amounts and the band, at whose beginning there is an edge."""
    anchor = scale.good[0]
    low = math.floor(math.log2(min([*shown, anchor]) / anchor))
    high = math.ceil(math.log2((max([*shown, scale.good[1] - 1]) + 1) / anchor))
    return [anchor * 2.0**power for power in range(low, high + 1)]


def _summary(amounts: Sequence[int], scale: _Scale) -> str:
    if not amounts:
        return f"no {scale.things}"
    small = sum(amount < scale.small for amount in amounts)
    middle = sorted(amounts)[len(amounts) // 2]
    return f"{len(amounts):,} {scale.things}, median {scale.written(middle)}, {small:,} small"


def _scaled(axes: Axes, edges: Sequence[float], scale: _Scale) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    marked = edges[:: math.ceil(len(edges) / _LABELS)]
    axes.set_xscale("log", base=2)
    axes.set_xticks(marked, [scale.written(edge) for edge in marked])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
