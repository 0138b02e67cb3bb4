"""How a number grows with a size: points, and the slope of the line through their logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

_MEBI = 1 << 20
# 1 is linear; 1.5 is halfway to a square.
STEEP = 1.5
# Less is noise of the allocator, and would bend a curve on logarithmic axes.
_LEAST_BYTES = 8 << 20


@dataclass(frozen=True)
class GrowthPoint:
    """One size, in a process of its own: seconds, processor seconds of all its processes, peaks, tasks, threads.

    `python` is the resident memory that the work added at its peak, `driver_rss` the JVM's resident memory. Heaps are
    in use at their peak, garbage included; without a cluster, `executor_heap` is 0. `widest` are the tasks of the
    stage with most of them.
    """

    size: int
    seconds: float
    cpu_seconds: float
    python: int
    driver_heap: int = 0
    driver_rss: int = 0
    executor_heap: int = 0
    tasks: int = 0
    widest: int = 0
    threads: int = 0


_IN_BYTES = ("python", "driver_heap", "driver_rss", "executor_heap")
_HEADS = {
    "seconds": "time, s",
    "cpu_seconds": "CPU, s",
    "python": "Python added, MiB",
    "driver_heap": "driver heap, MiB",
    "driver_rss": "driver JVM, MiB",
    "executor_heap": "executor heap, MiB",
    "tasks": "tasks",
    "widest": "widest stage",
    "threads": "Python threads",
}


@dataclass(frozen=True)
class Curve:
    """The points of one subject, by growing size."""

    name: str
    axis: str
    points: Sequence[GrowthPoint]

    @property
    def measures(self) -> list[str]:
        """Return the names of the fields that some point has."""
        names = [one.name for one in fields(GrowthPoint) if one.name != "size"]
        return [name for name in names if any(getattr(point, name) for point in self.points)]

    def slope(self, measure: str, last: int | None = None) -> float | None:
        """Return by which power of the size the measure grows: 0 is flat, 1 linear. None: too few points.

        With `last`, from these points at the end alone: a constant, such as imported modules, bends a curve's begin.
        """
        least = _LEAST_BYTES if measure in _IN_BYTES else 0
        found = [(point.size, max(getattr(point, measure), least)) for point in self.points[-(last or 0) :]]
        return slope([pair for pair in found if pair[1] > 0])

    def steep(self) -> list[str]:
        """Return a warning for each measure that grows much faster than the size, in all or in the last step."""
        warnings = []
        for measure in self.measures:
            found = max((one for last in (None, 2) if (one := self.slope(measure, last)) is not None), default=0.0)
            if found >= STEEP:
                what = f"{_HEADS[measure]} grows with the power {found:.2f} of {self.axis}"
                warnings.append(f"warning: {self.name}: {what}")
        return warnings

    def rows(self) -> list[tuple[str, ...]]:
        """Return a table: a head, a row for each point, and the slopes."""
        measures = self.measures
        return [
            (self.axis, *(_HEADS[measure] for measure in measures)),
            *((f"{point.size:,}", *(_text(measure)(getattr(point, measure)) for measure in measures))
              for point in self.points),
            *((name, *map(_number, (self.slope(measure, last) for measure in measures)))
              for name, last in (("slope", None), ("last step", 2))),
        ]  # fmt: skip

    def __str__(self) -> str:
        head, *rows = self.rows()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in (head, tuple("-" * width for width in widths), *rows)
        ]
        return "\n".join(["", f"{self.name}:", "", *lines, *self.steep()])


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the line nearest to the points' logarithms; None for fewer than two sizes."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(one[axis] for one in logs) / len(logs) for axis in (0, 1))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def _number(found: float | None) -> str:
    return "" if found is None else f"{found:.2f}"


def _text(measure: str) -> Callable[[float], str]:
    if measure in _IN_BYTES:
        return lambda value: f"{value / _MEBI:,.0f}"
    return (lambda value: f"{value:,.1f}") if measure.endswith("seconds") else (lambda value: f"{value:,.0f}")
