"""The Sparks that growth is measured on: a driver of 1 GiB, with executors of 1 GiB in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets_tests.worlds.cluster.test_standalone import NO_PYTHON, standalone

_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.pyspark.python": NO_PYTHON,
    # Peaks of heaps come with heartbeats.
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.metrics.pollingInterval": "100ms",
}
_HEARTBEATS_SECONDS = 2.5
_STARTS_WITHIN_SECONDS = 120


class Cluster(str, Enum):
    """Where a subject's Spark runs; NONE: the work starts one where it needs one."""

    NONE = "no Spark of the measurement"
    TWO_EXECUTORS = "two executors of one core"
    CORES = "an executor with as many cores as the size"
    WORKERS = "a standalone cluster with as many workers of one core as the size"

    @contextmanager
    def session(self, folder: Path, size: int) -> Iterator[SparkSession | None]:
        """Open a session whose executors have started."""
        if self is Cluster.NONE:
            yield None
            return
        executors = {Cluster.TWO_EXECUTORS: 2, Cluster.CORES: 1, Cluster.WORKERS: size}[self]
        with self._master(folder, size) as master:
            memory = "512m" if self is Cluster.WORKERS else "1g"
            settings = {**_SETTINGS, "spark.master": master, "spark.executor.memory": memory}
            spark = open_session(spark_settings(settings))
            _wait_for_executors(spark, executors)
            yield spark
            spark.stop()

    def _master(self, folder: Path, size: int) -> AbstractContextManager[str]:
        if self is Cluster.WORKERS:
            return standalone(folder / f"cluster-{size}-{time.time_ns()}", size)
        cores = size if self is Cluster.CORES else 1
        return _local_cluster(1 if self is Cluster.CORES else 2, cores)


@contextmanager
def _local_cluster(executors: int, cores: int) -> Iterator[str]:
    yield f"local-cluster[{executors},{cores},1024]"


def _wait_for_executors(spark: SparkSession, executors: int) -> None:
    """Run a job, then wait until all of them have registered. Raises TimeoutError."""
    deadline = time.monotonic() + _STARTS_WITHIN_SECONDS
    while len(heaps(spark)) < 1 + executors:
        spark.range(0, 1_000, 1, 2 * executors).count()
        if time.monotonic() > deadline:
            message = f"{len(heaps(spark)) - 1} of {executors} executors started"
            raise TimeoutError(message)
        time.sleep(0.2)


def heaps(spark: SparkSession) -> dict[str, int]:
    """Return the peak of the heap in use of the driver and each executor since its start, in bytes."""
    listed = spark._jsc.sc().statusStore().executorList(False)  # noqa: SLF001, FBT003 no public way
    found = {}
    for one in map(listed.apply, range(listed.size())):
        peaks = one.peakMemoryMetrics()
        found[one.id()] = int(peaks.get().getMetricValue("JVMHeapMemory")) if peaks.isDefined() else 0
    return found


def settled_heaps(spark: SparkSession) -> dict[str, int]:
    """Return the same after the heartbeats of what has run."""
    time.sleep(_HEARTBEATS_SECONDS)
    return heaps(spark)
