"""The JVM of a classic Spark session, where Delta's own classes live; what Python needs of Scala to call them.

Each call costs some 60 µs, and so does each step of a package's name: what is used often is kept. py4j's own iteration
costs 25 ms more, because it ends with an exception: so by index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import JavaClass, JavaObject, JavaPackage, JVMView
from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Jvm:
    """The JVM of a session; there is no public way to it."""

    spark: SparkSession

    @property
    def root(self) -> JVMView:
        """All packages."""
        return self.spark._jvm  # noqa: SLF001 see above

    @cached_property
    def delta(self) -> JavaPackage:
        """Delta's package."""
        return self.root.org.apache.spark.sql.delta

    @property
    def session(self) -> JavaObject:
        """The session as Scala has it."""
        return self.spark._jsparkSession  # noqa: SLF001 see above

    def activate(self) -> None:
        """Make the session the active one of the calling thread, with the settings that Delta's reader needs.

        Delta's classes ask the thread's active session for settings, and make data frames that belong to it; where
        there is none, or where it lacks a setting, they refuse id column mapping. Spark's public methods make a session
        active while they run; whoever calls Delta's classes has to do it. py4j has a JVM thread for each Python thread,
        and a new one has none. Delta sets what it needs (to read Parquet by field ids) when a session's analyzer is
        made, which otherwise happens at the first query.
        """
        self.session.sessionState().analyzer()
        self.root.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session)

    @property
    def none(self) -> JavaObject:
        """Scala's None."""
        return self.root.scala.Option.empty()

    def some(self, value: JavaObject) -> JavaObject:
        """Scala's Some(value)."""
        return self.root.scala.Option.apply(value)

    def singleton(self, package: JavaPackage, name: str) -> JavaObject:
        """The object that Scala code calls `name`."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    def array(self, type_: JavaClass, values: Sequence[object] = ()) -> JavaObject:
        """A Java array of the values."""
        array = self.spark.sparkContext._gateway.new_array(type_, len(values))  # noqa: SLF001 see above
        for index, value in enumerate(values):
            array[index] = value
        return array

    def java_list(self, values: Iterable[JavaObject] = ()) -> JavaObject:
        """A list of Java's."""
        listed = self._array_list()
        for value in values:
            listed.add(value)
        return listed

    def sequence(self, listed: JavaObject) -> JavaObject:
        """What is in a list of Java's as a sequence of Scala's; nothing of it comes to Python."""
        return self._converters.asScala(listed).toSeq()

    def scala_map(self, entries: Mapping[str, object]) -> JavaObject:
        """A map of Scala's."""
        made = self.root.java.util.HashMap()
        for name, value in entries.items():
            made.put(name, value)
        maps = self.singleton(self.root.scala.collection.immutable, "Map")
        return getattr(maps, "from")(self._converters.asScala(made))

    def frame(self, frame: JavaObject) -> DataFrame:
        """The data frame as Python has it."""
        return DataFrame(frame, self.spark)

    def row(self, values: Sequence[object]) -> JavaObject:
        """A row of a table."""
        return self._rows.create(self.array(self._object, values))

    def table(self, schema: str, rows: JavaObject) -> DataFrame:
        """A table of a list of rows, which are on the JVM's side."""
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
    """What is in a sequence of Scala's, in order."""
    indexed = sequence.toIndexedSeq()
    return (indexed.apply(index) for index in range(indexed.length()))


def java_items(listed: JavaObject) -> Iterator[JavaObject]:
    """What is in a list of Java's, in order."""
    return (listed.get(index) for index in range(listed.size()))
