"""Results of a suite: what was compared, what was aimed at; as lines to read and as JSON to keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.meter import Cost

_MEBI = 1 << 20


@dataclass(frozen=True)
class Case:
    """Some ways to do the same work, each several times. `baseline` is the way that the others are compared with.

    `size` is the number that a plot has on its axis: rows, commits, tables.
    """

    name: str
    ways: Mapping[str, tuple[Cost, ...]]
    baseline: str
    size: int = 0

    def seconds(self, way: str) -> float:
        """The way's median."""
        return median(cost.seconds for cost in self.ways[way])

    def ratio(self, way: str) -> float:
        """The way's median in times of the baseline's."""
        return self.seconds(way) / self.seconds(self.baseline)

    def __str__(self) -> str:
        width = max(map(len, self.ways))
        return "\n".join([f"{self.name}:", *(f"  {way:{width}}  {self._line(way)}" for way in self.ways)])

    def _line(self, way: str) -> str:
        costs = self.ways[way]
        seconds = [cost.seconds for cost in costs]
        return (
            f"{median(seconds):7.2f} s ({min(seconds):.2f} to {max(seconds):.2f}) {self.ratio(way):5.2f} x"
            f"  CPU {median(cost.cpu_seconds for cost in costs):6.1f} s"
            f"{_of_tasks(costs)}"
            f"  peak JVM {max(cost.jvm_peak for cost in costs) / _MEBI:5.0f} MiB"
            f"  Python {max(cost.python_peak for cost in costs) / _MEBI:4.0f} MiB"
        )


def _of_tasks(costs: Sequence[Cost]) -> str:
    """What Spark's tasks have read and shuffled, where that was measured: not in other processes."""
    if not any(cost.read for cost in costs):
        return ""
    read, shuffled = (median(getattr(cost, of) for cost in costs) / _MEBI for of in ("read", "shuffled"))
    return f"  read {read:6.0f} MiB  shuffled {shuffled:5.0f} MiB"


@dataclass(frozen=True)
class Goal:
    """A figure that was aimed at; `least`: larger is better."""

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
    """What a suite found; `notes` are lines that no figure holds."""

    suite: str
    cases: Sequence[Case] = ()
    goals: Sequence[Goal] = ()
    notes: Sequence[str] = field(default=())

    def __str__(self) -> str:
        return "\n".join(map(str, (f"== {self.suite} ==", *self.cases, *self.notes, *self.goals)))


def write_results(outcomes: Sequence[Outcome], file: Path) -> None:
    """Keep the outcomes as JSON."""
    file.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
