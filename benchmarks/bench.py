"""What every suite works with: a session, its meter, a folder, and how large the run is to be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from benchmarks.meter import Meter
from mirror_assets.encode.session import open_session, spark_settings

# Vectored reads are in none of Hadoop's counters.
_SETTINGS = {"spark.driver.memory": "6g", "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false"}
_Number = TypeVar("_Number", int, tuple[int, ...])


@dataclass(frozen=True)
class Bench:
    """One run of the benchmarks; `folder` is the suite's own, and empty."""

    folder: Path
    is_full: bool
    stores: bool = False

    @cached_property
    def spark(self) -> SparkSession:
        """A session of its own, on the Spark context that starts with the first of them."""
        return open_session(spark_settings(_SETTINGS))

    @property
    def meter(self) -> Meter:
        """Measures on the session."""
        return Meter(self.spark)

    @property
    def rounds(self) -> int:
        """How often each contestant runs.

        Three rounds of ratios hold the median of three others by chance in 3 of 5 cases, nine in 9 of 10: so what is
        stored, and later runs are compared with, has more.
        """
        return 9 if self.stores else self.size(3, 5)

    def size(self, small: _Number, full: _Number) -> _Number:
        """The number that this run is for."""
        return full if self.is_full else small
