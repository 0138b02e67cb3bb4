"""How much of each capacity's limits a table uses, and how it grows towards the next (reference `direct-lake` §1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.guardrails.capacity_fit import SkuFit, Use
from mirror_assets.direct_lake.guardrails.skus import Limit
from mirror_assets.direct_lake.plots.figure import (
    BAD,
    CAUTION,
    GOOD,
    INK,
    KEPT,
    calm,
    counted,
    new_figure,
    nothing,
    png,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars end at the widest share; from the second on a bar is a warning, from the third its words fit into it.
_WIDEST, _NEARLY, _INSIDE = 1.5, 0.8, 0.7
# A limit this many times as large as what there is would press the curve flat on an axis that is not logarithmic.
_FAR = 20
_DAY_MS = 86_400_000
_LONG_DAYS = 3650


def headroom_bars(fits: Sequence[SkuFit], table: str) -> bytes:
    """Draw a row per capacity and a column per limit that has a figure; bars are shares of the limit."""
    known = {limit: [_known(fit, limit) for fit in fits] for limit in Limit}
    columns = {limit: uses for limit, uses in known.items() if any(uses)}
    if not columns:
        return nothing(f"{table}: use of the guardrails")
    figure = new_figure(width=2 + 2.6 * len(columns), height=1.6 + 0.34 * len(fits))
    figure.suptitle(f"{table}: use of the guardrails")
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, uses in zip(panels, columns.values(), strict=True):
        _panel(axes, uses, [fit.sku.name for fit in fits])
    return png(figure)


def _known(fit: SkuFit, limit: Limit) -> Use | None:
    return next((use for use in fit.uses if use.limit is limit and use.used is not None), None)


def _panel(axes: Axes, uses: Sequence[Use | None], skus: Sequence[str]) -> None:
    from matplotlib.ticker import PercentFormatter

    for row, use in enumerate(uses):
        if use is None:
            continue
        share = _share(use)
        colour = BAD if share > 1 else CAUTION if share > _NEARLY else GOOD
        axes.barh(row, min(share, _WIDEST), color=colour, height=0.7)
        at, ink, weight = (0.03, "white", "bold") if share > _INSIDE else (share + 0.03, "black", "normal")
        axes.text(at, row, _words(use), va="center", fontsize=8, color=ink, weight=weight)
    one = next(use for use in uses if use is not None)
    axes.axvline(1, color=INK, linewidth=1)
    axes.set(title=f"{one.limit.value}: {_amount(one.used or 0, one)}", xlim=(0, _WIDEST))
    axes.set_yticks(range(len(skus)), skus)
    axes.set_ylim(len(skus) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xticks([0, 0.5, 1])
    axes.spines[["top", "right"]].set_visible(False)


def _share(use: Use) -> float:
    """What is used of the limit: 1 is all of it, and 0 stands for none."""
    if use.allowed is None:
        return 0.0
    return (use.used or 0) / use.allowed if use.allowed else float("inf")


def _words(use: Use) -> str:
    if use.allowed is None:
        return "no limit"
    share = _share(use)
    return f"{f'{share:.0%}' if share >= 0.01 else '<1%'} of {_amount(use.allowed, use)}"


def _amount(amount: float, use: Use) -> str:
    return sized(amount) if use.limit is Limit.MODEL_BYTES else counted(amount)


@dataclass(frozen=True)
class CapacityLimit:
    """A limit, and the capacities that have it, for example F2."""

    name: str
    amount: float


@dataclass(frozen=True)
class GrowthCurve:
    """Amounts of `measure` by times in ms since 1970, oldest first, and what is added a day now; None: not known."""

    measure: str
    samples: Sequence[tuple[int, float]]
    per_day: float | None = None

    @property
    def now(self) -> float:
        """The newest amount."""
        return self.samples[-1][1]

    def days_to(self, limit: CapacityLimit) -> float | None:
        """Return the days until the limit is reached at the present pace; None for never, 0 when it is passed."""
        if self.now >= limit.amount:
            return 0.0
        return (limit.amount - self.now) / self.per_day if self.per_day and self.per_day > 0 else None


def growth_chart(growth: GrowthCurve, limits: Sequence[CapacityLimit], table: str) -> bytes:
    """Draw the curve, limits as lines across, and what the present pace leads to up to the next limit.

    Limits beyond the next one above are left out.
    """
    if not growth.samples:
        return nothing(f"{table}: {growth.measure}")
    figure = new_figure(width=9)
    axes = figure.add_subplot()
    days = [time_ms / _DAY_MS for time_ms, _ in growth.samples]
    axes.step(days, [amount for _, amount in growth.samples], where="post", color=KEPT)
    axes.plot(days[-1:], [growth.now], "o", color=KEPT)
    joined = _same_joined(limits)
    above = [limit for limit in joined if limit.amount > growth.now]
    ahead = min(above, key=lambda limit: limit.amount, default=None)
    for limit in (limit for limit in joined if ahead is None or limit.amount <= ahead.amount):
        axes.axhline(limit.amount, color=BAD, linewidth=1.5)
        axes.annotate(limit.name, (0.01, limit.amount), xycoords=("axes fraction", "data"), va="bottom")
    if ahead is not None:
        _foretell(axes, growth, ahead, days)
    axes.set(title=f"{table}: {growth.measure}\n{_growth_words(growth, ahead)}", ylabel=growth.measure)
    _scaled(axes, growth, ahead)
    _dated(axes)
    return png(figure)


def _same_joined(limits: Sequence[CapacityLimit]) -> list[CapacityLimit]:
    """One limit per amount, named after all that have it."""
    names: dict[float, list[str]] = {}
    for limit in limits:
        names.setdefault(limit.amount, []).append(limit.name)
    return [CapacityLimit(", ".join(having), amount) for amount, having in names.items()]


def _foretell(axes: Axes, growth: GrowthCurve, ahead: CapacityLimit, days: Sequence[float]) -> None:
    """The line on, to the limit, or for as long again as the curve is long: what is far away is not known."""
    left = growth.days_to(ahead)
    if left is None or growth.per_day is None:
        return
    shown = min(left, max(days[-1] - days[0], 1.0))
    axes.plot([days[-1], days[-1] + shown], [growth.now, growth.now + shown * growth.per_day], "--", color=INK)


def _growth_words(growth: GrowthCurve, ahead: CapacityLimit | None) -> str:
    words = f"{counted(growth.now)} now"
    if growth.per_day is not None:
        words += f", {'+' if growth.per_day >= 0 else '-'}{counted(abs(growth.per_day))} a day"
    if ahead is None:
        return words
    days = growth.days_to(ahead)
    if days is None:
        return f"{words}; not growing to {ahead.name}"
    return f"{words}; {f'{days:,.0f} days' if days < _LONG_DAYS else 'more than ten years'} to {ahead.name}"


def _scaled(axes: Axes, growth: GrowthCurve, ahead: CapacityLimit | None) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    if ahead is not None and growth.now > 0 and ahead.amount > _FAR * growth.now:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda amount, _: counted(amount)))
    axes.margins(y=0.15)
    calm(axes)


def _dated(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    first, last = axes.get_xlim()
    pattern = "%Y-%m-%d" if last - first >= 6 else "%m-%d %H:%M"

    def written(day: float, _: int | None) -> str:
        return datetime.fromtimestamp(day * _DAY_MS / 1000, timezone.utc).strftime(pattern)

    axes.xaxis.set_major_locator(MaxNLocator(6, integer=last - first >= 6))
    axes.xaxis.set_major_formatter(FuncFormatter(written))
