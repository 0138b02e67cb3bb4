"""Maintenance on a chart: a dashed line where it was, and one line per operation in the legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.framing.values import Maintenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

_LINE = 10.0
_STYLES = {
    Maintenance.OPTIMIZE: ("#CC79A7", "v"),
    Maintenance.REORG: ("#56B4E9", "s"),
    Maintenance.VACUUM: ("#000000", "X"),
    Maintenance.RESTORE: ("#009E73", "^"),
}


def draw_marks(axes: Axes, marks: Sequence[tuple[float, Maintenance]]) -> float:
    """Each mark at its place on the horizontal axis, its sign above the chart; returns the room that signs take.

    That is in points, for the title to keep clear of: operations have a line of signs each.
    """
    there = [operation for operation in _STYLES if any(what is operation for _, what in marks)]
    for level, operation in enumerate(there):
        colour, sign = _STYLES[operation]
        places = sorted({place for place, what in marks if what is operation})
        for place in places:
            axes.axvline(place, color=colour, linestyle="--", linewidth=0.8, alpha=0.5, zorder=0.5)
        axes.plot(
            places,
            [1] * len(places),
            sign,
            color=colour,
            markersize=6,
            label=operation.value,
            transform=axes.get_xaxis_transform() + _raised(axes, _LINE * (level + 0.5)),
            clip_on=False,
        )
    return _LINE * len(there)


def _raised(axes: Axes, points: float) -> Transform:
    from matplotlib.transforms import ScaledTranslation

    return ScaledTranslation(0, points / 72, axes.figure.dpi_scale_trans)
