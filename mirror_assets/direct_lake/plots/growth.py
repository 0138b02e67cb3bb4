"""How something grows, and the limits that it grows towards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING

from mirror_assets.direct_lake.plots.figure import BAD, INK, KEPT, calm, counted, new_figure, nothing, png, sized

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
    axes.set(title=f"{table}: {growth.measure}\n{_words(growth, ahead)}", ylabel=growth.measure)
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


def _words(growth: Growth, ahead: Limit | None) -> str:
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
