"""What all pictures share: a sheet that needs no screen and no global state, colours, and words for large numbers."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.plots.errors import PlotsMissing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind people can tell apart.
GOOD, CAUTION, BAD = "#009E73", "#E69F00", "#D55E00"
KEPT, CHANGED, LOADED, DROPPED = "#0072B2", "#E69F00", "#D55E00", "#8E9BB3"
BAND, INK = "#009E73", "#444444"

_DOTS = 120
_NUMBERS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
# Microsoft's limits are such GB.
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def new_figure(width: float = 8, height: float = 4.5) -> Figure:
    """An empty sheet, its size in inches. Raises PlotsMissing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise PlotsMissing from error
    return Figure(figsize=(width, height), layout="constrained")


def png(figure: Figure) -> bytes:
    """The picture; the same one for the same data and library."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # dollars in a table's name begin no formula
    output = BytesIO()
    figure.savefig(output, format="png", dpi=_DOTS, metadata={"Software": None})
    return output.getvalue()


def nothing(title: str) -> bytes:
    """A picture that says that there is nothing to show."""
    figure = new_figure(height=1.5)
    figure.suptitle(title)
    figure.text(0.5, 0.4, "nothing to show", ha="center", color=INK)
    return png(figure)


def calm(axes: Axes) -> None:
    """Light lines to read values by, and no frame where nothing ends."""
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def counted(amount: float) -> str:
    """A number of things in few signs: 950, 1.5 M."""
    return _short(amount, _NUMBERS, "")


def sized(amount: float) -> str:
    """Bytes in few signs: 64 kB, 1.5 GB."""
    return _short(amount, _BYTES, " B")


def _short(amount: float, units: tuple[tuple[float, str], ...], none: str) -> str:
    for unit, name in units:
        if abs(amount) >= unit * 0.9995:
            return f"{amount / unit:.3g} {name}"
    return f"{amount:.3g}{none}"
