"""Two pictures of a table as PNG: its use of each capacity's limits, and what each framing loads.

Drawing needs matplotlib (extra `plots`); all functions raise PlotsMissing without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from io import BytesIO
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.framing import FramingPoint
from mirror_assets.direct_lake.guardrails import CapacityFit, Limit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind people can distinguish.
_GOOD, _CAUTION, _BAD = "#009E73", "#E69F00", "#D55E00"
_KEPT, _CHANGED, _LOADED, _DROPPED = "#0072B2", "#E69F00", "#D55E00", "#8E9BB3"
_DOTS_PER_INCH = 120
# Bars end at the widest share. Above the second they warn; above the third the label fits into the bar.
_WIDEST, _NEARLY, _INSIDE = 1.5, 0.8, 0.7
_NUMBERS = ((1e9, " B"), (1e6, " M"), (1e3, " k"), (1.0, ""))
_BYTES = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B"))
_MOST_LABELS = 12


def use_of_limits(fitting: CapacityFit) -> bytes:
    """Draw a row per capacity and a column per limit; bars are shares of the limit."""
    columns = list(zip(*(fit.uses for fit in fitting.fits), strict=True))
    figure = _new_figure(width=2 + 2.6 * len(columns), height=1.6 + 0.34 * len(fitting.fits))
    figure.suptitle(f"{fitting.figures.table}: use of the guardrails")
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, uses in zip(panels, columns, strict=True):
        units = _BYTES if uses[0].limit is Limit.MODEL_BYTES else _NUMBERS
        for row, use in enumerate(uses):
            share = 0.0 if use.allowed is None else use.used / use.allowed
            colour = _BAD if share > 1 else _CAUTION if share > _NEARLY else _GOOD
            axes.barh(row, min(share, _WIDEST), color=colour, height=0.7)
            label = "no limit"
            if use.allowed is not None:
                label = f"{f'{share:.0%}' if share >= 0.01 else '<1%'} of {short(use.allowed, units)}"
            at, ink, weight = (0.03, "white", "bold") if share > _INSIDE else (share + 0.03, "black", "normal")
            axes.text(at, row, label, va="center", fontsize=8, color=ink, weight=weight)
        axes.axvline(1, color="black", linewidth=1)
        axes.set(title=f"{uses[0].limit.value}: {short(uses[0].used, units)}", xlim=(0, _WIDEST))
        axes.set_yticks(range(len(uses)), [fit.sku.name for fit in fitting.fits])
        axes.set_ylim(len(uses) - 0.4, -0.6)
        axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.spines[["top", "right"]].set_visible(False)
    return _png(figure)


def framing_bars(points: Sequence[FramingPoint], table: str) -> bytes:
    """Draw a bar per framing, in rows: above the line what the version has, below it what was dropped.

    Rows of files without statistics are omitted; the title counts these files. Maintenance is named at its framing.
    """
    figure = _new_figure(width=10, height=5)
    axes = figure.add_subplot()
    places = range(len(points))
    bottom = [0] * len(points)
    for name, colour, sums in (
        ("kept", _KEPT, [point.effect.kept for point in points]),
        ("other deletion vector", _CHANGED, [point.effect.changed for point in points]),
        ("to load", _LOADED, [point.effect.reloaded for point in points]),
    ):
        rows = [some.known_rows for some in sums]
        axes.bar(places, rows, bottom=bottom, color=colour, label=name, width=0.9)
        bottom = [below + more for below, more in zip(bottom, rows, strict=True)]
    dropped = [-point.effect.dropped.known_rows for point in points]
    axes.bar(places, dropped, color=_DROPPED, label="dropped", width=0.9)
    axes.axhline(0, color="black", linewidth=0.8)
    for place, point in enumerate(points):
        axes.annotate("\n".join(sorted(set(point.maintenance))), (place, bottom[place]), ha="center", fontsize=7)
    shown = range(0, len(points), math.ceil(len(points) / _MOST_LABELS) or 1)
    days = (datetime.fromtimestamp(points[place].timestamp_ms / 1000, timezone.utc) for place in shown)
    axes.set_xticks(
        list(shown),
        [f"v{points[place].effect.last}\n{day:%m-%d}" for place, day in zip(shown, days, strict=True)],
    )
    axes.yaxis.set_major_formatter(lambda rows, _: short(abs(rows), _NUMBERS))
    axes.set(title=_framing_title(points, table), xlabel="framed at version, of the day", ylabel="rows")
    axes.grid(visible=True, axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return _png(figure)


def _framing_title(points: Sequence[FramingPoint], table: str) -> str:
    shares = [share for point in points if (share := point.effect.reloaded_share) is not None]
    unknown = max((point.effect.total.without_rows for point in points), default=0)
    parts = [f"{len(points):,} framings"]
    if shares:
        parts.append(f"{sum(shares) / len(shares):.0%} of the rows to load on average")
    if unknown:
        parts.append(f"up to {unknown:,} files without statistics omitted")
    return f"{table}: framing effect\n{', '.join(parts)}"


def short(amount: float, units: Sequence[tuple[float, str]]) -> str:
    """Return the amount in few characters: 950, 1.5 M, 64 kB."""
    size, name = next((unit for unit in units if amount >= unit[0] * 0.9995), units[-1])
    return f"{amount / size:.3g}{name}"


def _new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, its size in inches. Raises PlotsMissing if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise PlotsMissing from error
    return Figure(figsize=(width, height), layout="constrained")


def _png(figure: Figure) -> bytes:
    """Return the figure as PNG; the same bytes for the same data and library."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # dollars in a table's name begin no formula
    output = BytesIO()
    figure.savefig(output, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return output.getvalue()
