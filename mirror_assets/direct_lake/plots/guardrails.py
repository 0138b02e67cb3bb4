"""How much of each SKU's guardrails a table uses (reference `direct-lake` §1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.plots.figure import BAD, CAUTION, GOOD, INK, counted, new_figure, nothing, png, sized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars end at the widest share; from the second on a bar is a warning, from the third its words fit into it.
_WIDEST, _NEARLY, _INSIDE = 1.5, 0.8, 0.7


@dataclass(frozen=True)
class LimitUse:
    """What a table has of one measure, and what a SKU allows; None: no limit. `in_bytes` says how to write both."""

    sku: str
    measure: str
    used: float
    limit: float | None
    in_bytes: bool = False

    @property
    def share(self) -> float:
        """What is used of the limit: 1 is all of it, and 0 stands for a measure without one."""
        return 0.0 if self.limit is None else self.used / self.limit if self.limit else float("inf")


def headroom_bars(uses: Sequence[LimitUse], table: str) -> bytes:
    """A row per SKU and a column per measure, both in order of first appearance; bars are shares of the limit."""
    if not uses:
        return nothing(f"{table}: use of the guardrails")
    skus, measures = list(dict.fromkeys(use.sku for use in uses)), list(dict.fromkeys(use.measure for use in uses))
    figure = new_figure(width=2 + 2.6 * len(measures), height=1.6 + 0.34 * len(skus))
    figure.suptitle(f"{table}: use of the guardrails")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        _panel(axes, [use for use in uses if use.measure == measure], skus)
    return png(figure)


def _panel(axes: Axes, uses: Sequence[LimitUse], skus: Sequence[str]) -> None:
    from matplotlib.ticker import PercentFormatter

    rows = [skus.index(use.sku) for use in uses]
    axes.barh(rows, [min(use.share, _WIDEST) for use in uses], color=[_colour(use) for use in uses], height=0.7)
    for row, use in zip(rows, uses, strict=True):
        inside = use.share > _INSIDE
        at, colour = (0.03, "white") if inside else (use.share + 0.03, "black")
        axes.text(at, row, _words(use), va="center", fontsize=8, color=colour, weight="bold" if inside else "normal")
    axes.axvline(1, color=INK, linewidth=1)
    axes.set(title=f"{uses[0].measure}: {_amount(uses[0].used, uses[0])}", xlim=(0, _WIDEST))
    axes.set_yticks(range(len(skus)), skus)
    axes.set_ylim(len(skus) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xticks([0, 0.5, 1])
    axes.spines[["top", "right"]].set_visible(False)


def _colour(use: LimitUse) -> str:
    return BAD if use.share > 1 else CAUTION if use.share > _NEARLY else GOOD


def _words(use: LimitUse) -> str:
    if use.limit is None:
        return "no limit"
    share = f"{use.share:.0%}" if use.share >= 0.01 else "<1%"
    return f"{share} of {_amount(use.limit, use)}"


def _amount(amount: float, use: LimitUse) -> str:
    return sized(amount) if use.in_bytes else counted(amount)
