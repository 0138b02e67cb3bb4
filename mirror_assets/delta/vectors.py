"""Deletion vectors of one file in two versions: the rows that only one of them shows.

Vectors are read, compared and applied by Delta's own classes, which are private (see `versions`).
"""

from __future__ import annotations

from dataclasses import dataclass

from py4j.java_gateway import JavaObject, JVMView
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Vectors:
    """The deletion vectors of one table."""

    jvm: JVMView
    store: JavaObject
    folder: JavaObject

    @classmethod
    def of(cls, spark: SparkSession, log: JavaObject) -> Vectors:
        """Those of the table with this log."""
        jvm = spark._jvm  # noqa: SLF001 the only way to Delta's own classes
        stores = getattr(getattr(jvm.org.apache.spark.sql.delta.storage.dv, "DeletionVectorStore$"), "MODULE$")
        return cls(jvm, stores.createInstance(log.newDeltaHadoopConf()), log.dataPath())

    def only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """The file with a vector that leaves only those of its rows that `other`, the same file, hides; None: no row.

        A file that doesn't say how many rows are stored in it is given back whole.
        """
        shown, hidden = self._bitmap(other), self._bitmap(file)
        if shown is not None and hidden is not None:
            shown.andNot(hidden)
        if shown is None or shown.isEmpty():
            return None
        stored = file.numPhysicalRecords()
        return file if stored.isEmpty() else self._showing(file, shown, stored.get())

    def _showing(self, file: JavaObject, shown: JavaObject, stored: int) -> JavaObject:
        delta = self.jvm.org.apache.spark.sql.delta
        rest = delta.deletionvectors.RoaringBitmapArray()
        ranges = getattr(getattr(self.jvm.scala.collection.immutable, "Range$"), "MODULE$")
        rest.addRange(ranges.apply(0, stored, 1))
        rest.andNot(shown)
        rest.runOptimize()
        portable = getattr(getattr(delta.deletionvectors, "RoaringBitmapArrayFormat$"), "MODULE$").Portable()
        descriptor = delta.actions.DeletionVectorDescriptor.inlineInLog(
            rest.serializeAsByteArray(portable), rest.cardinality()
        )
        return file.removeRows(descriptor, False, False)._1()  # noqa: FBT003, SLF001 py4j knows no keywords; Scala's name

    def _bitmap(self, file: JavaObject) -> JavaObject | None:
        """The rows that a file's vector hides; None where it has no vector."""
        vector = file.deletionVector()
        stored = self.jvm.org.apache.spark.sql.delta.deletionvectors.StoredBitmap
        return None if vector is None else stored.create(vector, self.folder).load(self.store)
