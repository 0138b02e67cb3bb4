"""Results of a suite: cases as rows with ratios to their peers, curves of growth, and aims that are no ratios."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from pydantic import BaseModel, ConfigDict

from benchmarks.curve import Curve
from benchmarks.meter import Cost

_MEBI = 1 << 20
_HEAD = ("what", "median, s", "range, s", "CPU, s", "read, MiB", "peak JVM + Python, MiB", "ratio (range)")


class Spread(BaseModel):
    """The median of some ratios, and the lowest and highest of them."""

    model_config = ConfigDict(frozen=True)

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of the values, in three digits after the point."""
        return cls(median=round(median(values), 3), low=round(min(values), 3), high=round(max(values), 3))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Case:
    """Ways to do the same work, each several times: in the order of the rounds, in which each way ran once.

    Each way is compared with the `baseline` and with `peers`, which are ways too. `size` is the number that a plot has
    on its axis: rows, commits, tables.
    """

    name: str
    ways: Mapping[str, tuple[Cost, ...]]
    baseline: str
    size: int = 0
    peers: tuple[str, ...] = ()

    def seconds(self, way: str) -> float:
        """Return the way's median."""
        return median(cost.seconds for cost in self.ways[way])

    def compared(self, way: str, peer: str | None = None) -> Spread:
        """Return how often the peer's time the way took (None: the baseline's), round by round.

        A peer that ran in other rounds is compared by its median.
        """
        costs, others = self.ways[way], self.ways[peer or self.baseline]
        if len(costs) != len(others):
            base = median(cost.seconds for cost in others)
            return Spread.of([cost.seconds / base for cost in costs])
        return Spread.of([cost.seconds / other.seconds for cost, other in zip(costs, others, strict=True)])

    def ratios(self) -> Iterator[tuple[str, str, Spread]]:
        """Yield way, peer and ratio of each pair that is compared; a peer is not compared with the baseline."""
        for way in self.ways:
            peers = [self.baseline] if way in self.peers else [self.baseline, *self.peers]
            yield from ((way, peer, self.compared(way, peer)) for peer in peers if way not in (peer, self.baseline))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the table's rows."""
        ratios = list(self.ratios())
        for way, costs in self.ways.items():
            seconds = [cost.seconds for cost in costs]
            jvm, python = max(cost.jvm_peak for cost in costs), max(cost.python_peak for cost in costs)
            read = median(cost.read for cost in costs)
            yield (
                f"{self.name}: {way}",
                _text(median(seconds)),
                f"{_text(min(seconds))} to {_text(max(seconds))}",
                f"{median(cost.cpu_seconds for cost in costs):.1f}",
                f"{read / _MEBI:.0f}" if read else "",
                f"{jvm / _MEBI:,.0f} + {python / _MEBI:,.0f}",
                "; ".join(f"{ratio} of {peer}" for compared, peer, ratio in ratios if compared == way),
            )


@dataclass(frozen=True)
class Goal:
    """An aim for a number that is no ratio between ways; `least`: larger is better."""

    name: str
    value: float
    aim: float
    unit: str = "x"
    least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the value is as good as the aim."""
        return self.value >= self.aim if self.least else self.value <= self.aim

    def __str__(self) -> str:
        sign = ">=" if self.least else "<="
        met = "met" if self.is_met else "MISSED"
        return f"  {met:6}  {self.name}: {self.value:,.2f} {self.unit} (aim {sign} {self.aim:,g} {self.unit})"


@dataclass(frozen=True)
class Outcome:
    """The results of a suite; `notes` are lines that are no row of a table."""

    suite: str
    cases: Sequence[Case] = ()
    goals: Sequence[Goal] = ()
    notes: Sequence[str] = field(default=())
    curves: Sequence[Curve] = ()

    def ratios(self) -> dict[str, Spread]:
        """Return each compared ratio by the name of its row."""
        return {f"{case.name}: {way} ÷ {peer}": ratio for case in self.cases for way, peer, ratio in case.ratios()}


def table(area: str, outcomes: Sequence[Outcome]) -> str:
    """Return the area's table, its curves, and the other lines."""
    rows = [row for outcome in outcomes for case in outcome.cases for row in case.rows()]
    lines = [f"== {area} =="]
    if rows:
        widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
        lines += (
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in (_HEAD, tuple("-" * width for width in widths), *rows)
        )
    for outcome in outcomes:
        lines += map(str, (*outcome.curves, *outcome.notes, *outcome.goals))
    return "\n".join(lines)


def _text(seconds: float) -> str:
    """Return the seconds with two digits, or four where two would say nothing."""
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.4f}"


def write_results(outcomes: Sequence[Outcome], file: Path) -> None:
    """Write every single cost as JSON."""
    file.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
