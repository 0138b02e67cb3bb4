"""What a piece of work costs on a Spark session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """One run: seconds, processor seconds, bytes that Spark's tasks read from files and shuffled, peaks of memory.

    Python and the JVM are counted apart; peaks are resident bytes, of which a JVM gives little back between runs.
    """

    seconds: float
    cpu_seconds: float
    read: int
    shuffled: int
    jvm_peak: int
    python_peak: int


@dataclass(frozen=True)
class Meter:
    """Measures runs on a session."""

    spark: SparkSession

    def measured(self, run: Callable[[], object]) -> Cost:
        """The cost of the run."""
        processes = (self._jvm, os.getpid())
        for process in processes:
            forget_peak(process)
        tasks, cpu, began = self._tasks(), sum(map(_cpu_seconds, processes)), time.perf_counter()
        run()
        seconds = time.perf_counter() - began
        cpu = sum(map(_cpu_seconds, processes)) - cpu
        read, shuffled = (after - before for before, after in zip(tasks, self._tasks(), strict=True))
        return Cost(seconds, cpu, read, shuffled, peak(self._jvm), peak(os.getpid()))

    @property
    def _jvm(self) -> int:
        pid: int = self.spark.sparkContext._gateway.proc.pid  # noqa: SLF001 there is no public way
        return pid

    def _tasks(self) -> tuple[int, int]:
        """Bytes read and shuffled by all tasks so far, once their ends have reached Spark's own store."""
        context = self.spark._jsc.sc()  # noqa: SLF001 there is no public way
        context.listenerBus().waitUntilEmpty()
        executors = context.statusStore().executorList(False)  # noqa: FBT003 py4j knows no keywords
        each = [executors.apply(index) for index in range(executors.size())]
        return sum(one.totalInputBytes() for one in each), sum(one.totalShuffleWrite() for one in each)


def _cpu_seconds(process: int) -> float:
    """Of all its threads, those that have ended too; its children's are their own."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def forget_peak(process: int) -> None:
    """Let the peak of the process's resident memory begin with what is resident now."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")


def peak(process: int) -> int:
    """Bytes of its resident memory at its largest, since that was last forgotten; of its own, not of a parent."""
    return _status(process, "VmHWM:")


def resident(process: int) -> int:
    """Bytes of its resident memory now."""
    return _status(process, "VmRSS:")


def _status(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))
