"""Reaches the JVM of a classic Spark session by py4j, and converts values for calls of Delta's Scala classes.

Each py4j call takes some 60 µs, and each part of a package name is a call, so classes in frequent use are cached.
Sequences are read by index: py4j's iteration ends with a Java exception, which takes 25 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaClass, JavaObject, JavaPackage, JVMView
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Jvm:
    """The JVM behind a session, which PySpark only offers as private attributes."""

    spark: SparkSession

    @property
    def root(self) -> JVMView:
        """The root of all Java packages."""
        return self.spark._jvm  # noqa: SLF001 see above

    @cached_property
    def delta(self) -> JavaPackage:
        """The package `org.apache.spark.sql.delta`."""
        return self.root.org.apache.spark.sql.delta

    @property
    def session(self) -> JavaObject:
        """The Scala SparkSession."""
        return self.spark._jsparkSession  # noqa: SLF001 see above

    def activate(self) -> None:
        """Make the session the active one of the calling thread, with the settings that Delta's reader needs.

        Delta's classes take settings from the JVM thread's active session and create data frames in it; without one, or
        without Delta's setting to read Parquet by field ids, they refuse id column mapping. Spark's public methods
        activate their session while they run; direct calls of Delta's classes need this call first, in each thread:
        py4j gives every Python thread a JVM thread of its own. Creating the session's analyzer makes Delta set what it
        needs; otherwise the first query does.
        """
        self.session.sessionState().analyzer()
        self.root.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session)

    @property
    def none(self) -> JavaObject:
        """Scala's `None`."""
        return self.root.scala.Option.empty()

    def some(self, value: JavaObject) -> JavaObject:
        """Return Scala's `Some(value)`."""
        return self.root.scala.Option.apply(value)

    def singleton(self, package: JavaPackage, name: str) -> JavaObject:
        """Return the Scala `object` of this name."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    def array(self, type_: JavaClass, values: Sequence[object] = ()) -> JavaObject:
        """Return a Java array of the values."""
        array = self.spark.sparkContext._gateway.new_array(type_, len(values))  # noqa: SLF001 see above
        for index, value in enumerate(values):
            array[index] = value
        return array

    def java_list(self, values: Iterable[JavaObject] = ()) -> JavaObject:
        """Return a `java.util.ArrayList` of the values."""
        listed = self._array_list()
        for value in values:
            listed.add(value)
        return listed

    def sequence(self, listed: JavaObject) -> JavaObject:
        """Return a Java list as a Scala Seq, without moving its items to Python."""
        return self._converters.asScala(listed).toSeq()

    def scala_map(self, entries: Mapping[str, object]) -> JavaObject:
        """Return an immutable Scala Map."""
        made = self.root.java.util.HashMap()
        for name, value in entries.items():
            made.put(name, value)
        maps = self.singleton(self.root.scala.collection.immutable, "Map")
        return getattr(maps, "from")(self._converters.asScala(made))

    def frame(self, frame: JavaObject) -> DataFrame:
        """Return the Scala data frame as a PySpark one."""
        return DataFrame(frame, self.spark)

    def row(self, values: Sequence[object]) -> JavaObject:
        """Return a Spark SQL Row for `table`."""
        return self._rows.create(self.array(self._object, values))

    def table(self, schema: str, rows: JavaObject) -> DataFrame:
        """Return a data frame with this DDL schema from a Java list of Rows."""
        struct = self.root.org.apache.spark.sql.types.StructType.fromDDL(schema)
        return self.frame(self.session.createDataFrame(rows, struct))

    @cached_property
    def _array_list(self) -> JavaClass:
        return self.root.java.util.ArrayList

    @cached_property
    def _object(self) -> JavaClass:
        return self.root.java.lang.Object

    @cached_property
    def _rows(self) -> JavaClass:
        return self.root.org.apache.spark.sql.RowFactory

    @cached_property
    def _converters(self) -> JavaClass:
        return self.root.scala.jdk.javaapi.CollectionConverters


def items(sequence: JavaObject) -> Iterator[JavaObject]:
    """Yield the items of a Scala sequence in order."""
    indexed = sequence.toIndexedSeq()
    return (indexed.apply(index) for index in range(indexed.length()))


def java_items(listed: JavaObject) -> Iterator[JavaObject]:
    """Yield the items of a Java list in order."""
    return (listed.get(index) for index in range(listed.size()))
