"""What a piece of work costs on a Spark session: seconds, and bytes that its tasks read from files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from pyspark.sql import SparkSession

_MEBI = 1 << 20
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Cost(Generic[_Result]):
    """One run, and what came out of it."""

    seconds: float
    bytes_read: int
    result: _Result

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s  {self.bytes_read / _MEBI:9.1f} MiB read"


def measured(spark: SparkSession, run: Callable[[], _Result]) -> Cost[_Result]:
    """The cost of the run."""
    before, began = _bytes_read(spark), time.perf_counter()
    result = run()
    seconds = time.perf_counter() - began
    return Cost(seconds, _bytes_read(spark) - before, result)


def middle(costs: Sequence[Cost[_Result]]) -> Cost[_Result]:
    """Median seconds and bytes, and the result of the last run."""
    seconds, read = median(cost.seconds for cost in costs), median(cost.bytes_read for cost in costs)
    return Cost(seconds, int(read), costs[-1].result)


def _bytes_read(spark: SparkSession) -> int:
    """Of all tasks so far, once their ends have reached Spark's own store."""
    context = spark._jsc.sc()  # noqa: SLF001 there is no public way
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)  # noqa: FBT003 py4j knows no keywords
    return sum(executors.apply(index).totalInputBytes() for index in range(executors.size()))
