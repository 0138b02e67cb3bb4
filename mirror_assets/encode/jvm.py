"""Reaches the JVM of a classic Spark session by py4j, for what PySpark has no public way to.

Sequences are read by index: py4j's iteration ends with a Java exception, which takes 25 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import DataFrame, SparkSession

# They log errors of queries and tasks, which have values of rows, and secrets of expressions.
_LOGGERS = (
    *("util.Utils", "executor.Executor", "scheduler.TaskSetManager"),
    *("sql.execution.datasources.FileFormatWriter", "sql.delta.files.DeltaFileFormatWriter"),
    "sql.util.ExecutionListenerBus",  # Spark 4.0, where a query with an Observation has failed
)


@dataclass(frozen=True)
class Jvm:
    """The JVM behind a session, which PySpark only offers as private attributes."""

    spark: SparkSession

    @property
    def root(self) -> JVMView:
        """The root of all Java packages."""
        return self.spark._jvm  # noqa: SLF001 see above

    @property
    def session(self) -> JavaObject:
        """The Scala SparkSession."""
        return self.spark._jsparkSession  # noqa: SLF001 see above

    def activate(self) -> None:
        """Make the session the active one of the calling thread.

        Spark's public methods do so while they run. Direct calls of Scala's methods need it first, in each thread: py4j
        gives every Python thread a JVM thread of its own. Creating the session's analyzer lets its extensions set what
        they need.
        """
        self.session.sessionState().analyzer()
        self.root.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session)

    def hide_values(self) -> None:
        """Stop the JVM on this machine from logging errors with values. The errors still reach the caller."""
        log4j = self.root.org.apache.logging.log4j
        for name in _LOGGERS:
            log4j.core.config.Configurator.setLevel(f"org.apache.spark.{name}", log4j.Level.OFF)

    def java_list(self, values: Iterable[JavaObject] = ()) -> JavaObject:
        """Return a `java.util.ArrayList` of the values."""
        listed = self.root.java.util.ArrayList()
        for value in values:
            listed.add(value)
        return listed

    def frame(self, frame: JavaObject) -> DataFrame:
        """Return the Scala data frame as a PySpark one."""
        return DataFrame(frame, self.spark)


def items(sequence: JavaObject) -> Iterator[JavaObject]:
    """Yield the items of a Scala sequence in order."""
    indexed = sequence.toIndexedSeq()
    return (indexed.apply(index) for index in range(indexed.length()))
