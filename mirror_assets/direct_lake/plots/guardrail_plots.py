"""How much of each capacity's limits a table uses, and how it grows towards the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING

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
        axes.text(
            at, row, _use_words(use), va="center", fontsize=8, color=colour, weight="bold" if inside else "normal"
        )
    axes.axvline(1, color=INK, linewidth=1)
    axes.set(title=f"{uses[0].measure}: {_amount(uses[0].used, uses[0])}", xlim=(0, _WIDEST))
    axes.set_yticks(range(len(skus)), skus)
    axes.set_ylim(len(skus) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xticks([0, 0.5, 1])
    axes.spines[["top", "right"]].set_visible(False)


def _colour(use: LimitUse) -> str:
    return BAD if use.share > 1 else CAUTION if use.share > _NEARLY else GOOD


def _use_words(use: LimitUse) -> str:
    if use.limit is None:
        return "no limit"
    share = f"{use.share:.0%}" if use.share >= 0.01 else "<1%"
    return f"{share} of {_amount(use.limit, use)}"


def _amount(amount: float, use: LimitUse) -> str:
    return sized(amount) if use.in_bytes else counted(amount)


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A limit this many times as large as what there is would press the curve flat on an axis that is not logarithmic.
_FAR = 20
_DAY_MS = 86_400_000
_LONG = 3650


@dataclass(frozen=True)
class Sample:
    """What there was at a time, in ms since 1970."""

    time_ms: int
    amount: float


@dataclass(frozen=True)
class Limit:
    """A limit and whose it is, for example F2."""

    name: str
    amount: float


@dataclass(frozen=True)
class Growth:
    """How much of `measure` there was, oldest first, and how much is added a day now; None: not to be foretold."""

    measure: str
    samples: Sequence[Sample]
    per_day: float | None = None
    in_bytes: bool = False

    @property
    def now(self) -> float:
        """The newest amount."""
        return self.samples[-1].amount

    def days_to(self, limit: Limit) -> float | None:
        """Days until the limit is reached at the present pace; None when it is never, 0 when it is passed."""
        if self.now >= limit.amount:
            return 0.0
        return (limit.amount - self.now) / self.per_day if self.per_day and self.per_day > 0 else None


def growth_chart(growth: Growth, limits: Sequence[Limit], table: str, zone: tzinfo = timezone.utc) -> bytes:
    """The curve, limits as lines across, and what the present pace leads to up to the next limit.

    Limits beyond the next one above are left out.
    """
    if not growth.samples:
        return nothing(f"{table}: {growth.measure}")
    figure = new_figure(width=9)
    axes = figure.add_subplot()
    days = [sample.time_ms / _DAY_MS for sample in growth.samples]
    axes.step(days, [sample.amount for sample in growth.samples], where="post", color=KEPT)
    axes.plot(days[-1:], [growth.now], "o", color=KEPT)
    ahead = _next(growth, limits)
    for limit in (limit for limit in _same_joined(limits) if ahead is None or limit.amount <= ahead.amount):
        axes.axhline(limit.amount, color=BAD, linewidth=1.5)
        axes.annotate(limit.name, (0.01, limit.amount), xycoords=("axes fraction", "data"), va="bottom")
    if ahead is not None:
        _foretell(axes, growth, ahead, days)
    axes.set(title=f"{table}: {growth.measure}\n{_growth_words(growth, ahead)}", ylabel=growth.measure)
    _scaled(axes, growth, ahead)
    _dated(axes, zone)
    return png(figure)


def _next(growth: Growth, limits: Sequence[Limit]) -> Limit | None:
    above = [limit for limit in _same_joined(limits) if limit.amount > growth.now]
    return min(above, key=lambda limit: limit.amount, default=None)


def _same_joined(limits: Sequence[Limit]) -> list[Limit]:
    """One limit per amount, named after all that have it."""
    names: dict[float, list[str]] = {}
    for limit in limits:
        names.setdefault(limit.amount, []).append(limit.name)
    return [Limit(", ".join(having), amount) for amount, having in names.items()]


def _foretell(axes: Axes, growth: Growth, ahead: Limit, days: Sequence[float]) -> None:
    """The line on, to the limit, or for as long again as the curve is long: what is far away is not known."""
    left = growth.days_to(ahead)
    if left is None or growth.per_day is None:
        return
    shown = min(left, max(days[-1] - days[0], 1.0))
    axes.plot([days[-1], days[-1] + shown], [growth.now, growth.now + shown * growth.per_day], "--", color=INK)


def _growth_words(growth: Growth, ahead: Limit | None) -> str:
    written = sized if growth.in_bytes else counted
    words = f"{written(growth.now)} now"
    if growth.per_day is not None:
        words += f", {'+' if growth.per_day >= 0 else '-'}{written(abs(growth.per_day))} a day"
    if ahead is None:
        return words
    days = growth.days_to(ahead)
    if days is None:
        return f"{words}; not growing to {ahead.name}"
    return f"{words}; {f'{days:,.0f} days' if days < _LONG else 'more than ten years'} to {ahead.name}"


def _scaled(axes: Axes, growth: Growth, ahead: Limit | None) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    written = sized if growth.in_bytes else counted
    if ahead is not None and growth.now > 0 and ahead.amount > _FAR * growth.now:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda amount, _: written(amount)))
    axes.margins(y=0.15)
    calm(axes)


def _dated(axes: Axes, zone: tzinfo) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    first, last = axes.get_xlim()
    pattern = "%Y-%m-%d" if last - first >= 6 else "%m-%d %H:%M"

    def written(day: float, _: int | None) -> str:
        return datetime.fromtimestamp(day * _DAY_MS / 1000, zone).strftime(pattern)

    axes.xaxis.set_major_locator(MaxNLocator(6, integer=last - first >= 6))
    axes.xaxis.set_major_formatter(FuncFormatter(written))
