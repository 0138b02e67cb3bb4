"""`python -m benchmarks.growth.point SUBJECT FOLDER SIZE`: measure one size in this process, and print it as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from benchmarks.curve import GrowthPoint
from benchmarks.growth.clusters import settled_heaps
from benchmarks.growth.subjects import SUBJECTS, Subject
from benchmarks.meter import forget_peak, peak, resident
from benchmarks.processes import cpu_of_family


def measured_alone(subject: Subject, folder: Path, size: int) -> GrowthPoint:
    """Return the point, measured in a new process. Raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.growth.point", subject.name, str(folder), str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return GrowthPoint(**json.loads(done.stdout.splitlines()[-1]))


def measured(subject: Subject, folder: Path, size: int) -> GrowthPoint:
    """Measure the work here."""
    with subject.cluster.session(folder, size) as spark:
        work = subject.work(spark, folder)
        before = _jobs(spark)
        forget_peak(os.getpid())
        start = resident(os.getpid())
        with _counting_threads() as threads:
            cpu, began = cpu_of_family(os.getpid()), time.perf_counter()
            work()
            seconds = time.perf_counter() - began
            cpu = cpu_of_family(os.getpid()) - cpu
        added = max(0, peak(os.getpid()) - start)
        point = GrowthPoint(size, round(seconds, 3), round(cpu, 2), added, threads=threads[0])
        return _with_spark(point, before)


def _with_spark(point: GrowthPoint, before: set[int]) -> GrowthPoint:
    """Return the point with what the running Spark, the measurement's or the work's own, says about the work."""
    context = SparkContext._active_spark_context  # noqa: SLF001 there is no public way
    if context is None:
        return point
    spark = SparkSession(context)
    widths = _widths(spark, _jobs(spark) - before)
    found = settled_heaps(spark)
    driver = found.pop("driver", 0)
    gateway = context._gateway  # noqa: SLF001 there is no public way
    return replace(
        point,
        driver_heap=driver,
        driver_rss=peak(gateway.proc.pid),
        executor_heap=max(found.values(), default=0),
        tasks=sum(widths),
        widest=max(widths, default=0),
    )


def _jobs(spark: SparkSession | None) -> set[int]:
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) if spark else set()


def _widths(spark: SparkSession, jobs: set[int]) -> list[int]:
    """Return the tasks of each stage of these jobs that Spark still knows."""
    tracker = spark.sparkContext.statusTracker()
    known = [info for job in jobs if (info := tracker.getJobInfo(job))]
    stages = {stage for info in known for stage in info.stageIds}
    return [info.numTasks for stage in stages if (info := tracker.getStageInfo(stage)) and info.numCompletedTasks]


@contextmanager
def _counting_threads() -> Iterator[list[int]]:
    """Count this process's Python threads all the time; the list's one number is the largest count."""
    most, ended = [0], threading.Event()

    def count() -> None:
        while not ended.wait(0.01):
            most[0] = max(most[0], threading.active_count() - 1)

    counting = threading.Thread(target=count)
    counting.start()
    try:
        yield most
    finally:
        ended.set()
        counting.join()


def main(name: str, folder: str, size: str) -> None:
    """Measure the point, and print it."""
    point = measured(SUBJECTS[name], Path(folder), int(size))
    print(f"\n{json.dumps(asdict(point))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
