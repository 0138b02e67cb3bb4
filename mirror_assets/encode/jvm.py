"""Reaches the JVM of a classic Spark session by py4j, for what PySpark has no public way to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from py4j.java_gateway import JavaClass, JavaObject, JVMView
from pyspark.sql import SparkSession

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

    def has_class(self, name: str) -> bool:
        """Return whether the JVM has this class, by its full name."""
        found: object = self.root
        for part in name.split("."):
            found = getattr(found, part)
        return isinstance(found, JavaClass)

    def hide_values(self) -> None:
        """Stop the JVM on this machine from logging errors with values. The errors still reach the caller."""
        log4j = self.root.org.apache.logging.log4j
        for name in _LOGGERS:
            log4j.core.config.Configurator.setLevel(f"org.apache.spark.{name}", log4j.Level.OFF)

    def java_map(self, entries: Mapping[str, str]) -> JavaObject:
        """Return a `java.util.HashMap` of the entries."""
        made = self.root.java.util.HashMap()
        for name, value in entries.items():
            made.put(name, value)
        return made

    def java_list(self, values: Iterable[JavaObject]) -> JavaObject:
        """Return a `java.util.ArrayList` of the values."""
        listed = self.root.java.util.ArrayList()
        for value in values:
            listed.add(value)
        return listed
