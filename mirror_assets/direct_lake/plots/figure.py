"""What all pictures share: a sheet without a screen, colours, short numbers, and marks of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.log_history import Maintenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

# Okabe and Ito's palette, which colour-blind people can tell apart.
GOOD, CAUTION, BAD = "#009E73", "#E69F00", "#D55E00"
KEPT, CHANGED, LOADED, DROPPED = "#0072B2", "#E69F00", "#D55E00", "#8E9BB3"
BAND, INK = "#009E73", "#444444"

_DOTS = 120
_NUMBERS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
# Microsoft's limits are such GB.
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
# Points that a line of signs takes above a chart.
_LINE = 10.0
_STYLES = {
    Maintenance.OPTIMIZE: ("#CC79A7", "v"),
    Maintenance.REORG: ("#56B4E9", "s"),
    Maintenance.VACUUM: ("#000000", "X"),
    Maintenance.RESTORE: ("#009E73", "^"),
}


def new_figure(width: float = 8, height: float = 4.5) -> Figure:
    """Make an empty sheet, its size in inches. Raises PlotsMissing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise PlotsMissing from error
    return Figure(figsize=(width, height), layout="constrained")


def png(figure: Figure) -> bytes:
    """Save as PNG; the same bytes for the same data and library."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # dollars in a table's name begin no formula
    output = BytesIO()
    figure.savefig(output, format="png", dpi=_DOTS, metadata={"Software": None})
    return output.getvalue()


def nothing(title: str) -> bytes:
    """Draw that there is nothing to show."""
    figure = new_figure(height=1.5)
    figure.suptitle(title)
    figure.text(0.5, 0.4, "nothing to show", ha="center", color=INK)
    return png(figure)


def calm(axes: Axes) -> None:
    """Add light lines to read values by, and take the frame away where nothing ends."""
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def counted(amount: float) -> str:
    """Write a number of things in few signs: 950, 1.5 M."""
    return _short(amount, _NUMBERS, "")


def sized(amount: float) -> str:
    """Write bytes in few signs: 64 kB, 1.5 GB."""
    return _short(amount, _BYTES, " B")


def _short(amount: float, units: tuple[tuple[float, str], ...], none: str) -> str:
    for unit, name in units:
        if abs(amount) >= unit * 0.9995:
            return f"{amount / unit:.3g} {name}"
    return f"{amount:.3g}{none}"


def draw_marks(axes: Axes, marks: Sequence[tuple[float, Maintenance]]) -> float:
    """Draw each mark at its place on the horizontal axis, with its sign above the chart.

    Returns the room that the signs take, in points, for the title to keep clear of: each operation has a line.
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
