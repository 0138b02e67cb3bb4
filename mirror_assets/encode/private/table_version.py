"""A version of a table as Delta's own classes hold it: reads chosen files, with their deletion vectors applied."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version

from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.private.jvm import Jvm, java_items
from mirror_assets.encode.spark_errors import SessionUnfit
from mirror_assets.source.batching import FileChunk
from mirror_assets.source.errors import SourceUnreadable


@dataclass(frozen=True)
class Vectors:
    """The deletion vectors of one table; each is read once."""

    jvm: Jvm
    store: JavaObject
    folder: JavaObject
    _read: dict[str, JavaObject] = field(default_factory=dict)

    @classmethod
    def of(cls, jvm: Jvm, log: JavaObject) -> Vectors:
        """Those of the table with this log."""
        stores = jvm.singleton(jvm.delta.storage.dv, "DeletionVectorStore")
        return cls(jvm, stores.createInstance(log.newDeltaHadoopConf()), log.dataPath())

    def no_rows(self) -> JavaObject:
        """An empty bitmap."""
        return self._bitmap()

    def hidden_only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """A bitmap of the rows that `file` hides and `other`, the same file, shows; None: no row. Not to be changed."""
        hidden, shown_not = self._hidden(file), self._hidden(other)
        if hidden is None or shown_not is None:
            return hidden
        rest = hidden.copy()
        rest.andNot(shown_not)
        return None if rest.isEmpty() else rest

    def only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """The file with a vector that leaves only those of its rows that `other`, the same file, hides; None: no row.

        A file that doesn't say how many rows are stored in it is given back whole.
        """
        shown, stored = self.hidden_only_in(other, file), file.numPhysicalRecords()
        if shown is None or stored.isEmpty():
            return None if shown is None else file
        rest, ranges = self.no_rows(), self.jvm.singleton(self.jvm.root.scala.collection.immutable, "Range")
        rest.addRange(ranges.apply(0, stored.get(), 1))
        rest.andNot(shown)
        return self.with_vector(file, rest)

    def with_vector(self, file: JavaObject, rows: JavaObject) -> JavaObject:
        """The file with a vector of these rows in place of its own."""
        delta = self.jvm.delta
        rows.runOptimize()
        portable = self.jvm.singleton(delta.deletionvectors, "RoaringBitmapArrayFormat").Portable()
        inline = delta.actions.DeletionVectorDescriptor.inlineInLog(
            rows.serializeAsByteArray(portable), rows.cardinality()
        )
        action = json.loads(file.json())  # Scala's own copy takes every field by position
        action["add"]["deletionVector"] = {
            "storageType": inline.storageType(),
            "pathOrInlineDv": inline.pathOrInlineDv(),
            "sizeInBytes": inline.sizeInBytes(),
            "cardinality": inline.cardinality(),
        }
        return delta.actions.Action.fromJson(json.dumps(action))

    def _hidden(self, file: JavaObject) -> JavaObject | None:
        """The rows that a file's vector hides; None where it has no vector."""
        vector = file.deletionVector()
        if vector is None:
            return None
        name = vector.uniqueId()
        if name not in self._read:
            self._read[name] = self._stored.create(vector, self.folder).load(self.store)
        return self._read[name]

    @cached_property
    def _bitmap(self) -> JavaClass:
        return self.jvm.delta.deletionvectors.RoaringBitmapArray

    @cached_property
    def _stored(self) -> JavaClass:
        return self.jvm.delta.deletionvectors.StoredBitmap


_PROVED_VERSIONS = frozenset({"4.4.0"})
_VECTOR = ("storageType", "pathOrInlineDv", "offset")


def has_own_reader(spark: SparkSession) -> bool:
    """Whether what is private in Delta may be used in the session."""
    return version("delta-spark") in _PROVED_VERSIONS and hasattr(spark, "_jsparkSession")


def require_own_reader(spark: SparkSession, purpose: str) -> None:
    """Raise SessionUnfit where it may not, and the purpose needs it."""
    if not has_own_reader(spark):
        raise SessionUnfit(purpose, sorted(_PROVED_VERSIONS))


@dataclass(frozen=True)
class FileRows:
    """Rows of chosen files, and how many bytes of files that is."""

    frame: DataFrame
    bytes: int


@dataclass(frozen=True)
class TableVersion:
    """Delta's log of a table, and its snapshot at one version."""

    jvm: Jvm
    log: JavaObject
    snapshot: JavaObject

    @classmethod
    def opened(cls, spark: SparkSession, uri: str, at: int) -> TableVersion:
        """The version `at` of the table, whose session becomes the calling thread's active one.

        Raises what Spark raises when the version can't be put together any more.
        """
        jvm = Jvm(spark)
        jvm.activate()
        log = jvm.delta.DeltaLog.forTable(jvm.session, uri)
        return cls(jvm, log, log.getSnapshotAt(at, jvm.none, jvm.none, jvm.none, False))  # noqa: FBT003 py4j knows no keywords

    def rows_not_in(self, other: TableVersion) -> FileRows:
        """The live rows of files that the other version has not; with another vector, those that are hidden there.

        Every row that is here and not there is among them. The bytes are those of files that are read whole.
        """
        found = self._files().subtract(other._files()).select("path").collect()
        wanted = F.col("path").isin([row["path"] for row in found])
        vectors, twins = Vectors.of(self.jvm, self.log), {_identity(file): file for file in other._named(wanted)}
        named = [(file, twins.get(_identity(file))) for file in self._named(wanted)]
        whole = [file for file, twin in named if twin is None]
        parts = (vectors.only_in(file, twin) for file, twin in named if twin is not None)
        chosen = self.jvm.java_list((*whole, *(part for part in parts if part is not None)))
        return FileRows(self._rows(chosen), sum(file.size() for file in whole))

    def rows_of(self, first: int, end: int) -> DataFrame:
        """The live rows of files `first` to `end` - 1, in order of their paths."""
        no_more = self.jvm.array(self.jvm.root.java.lang.String)
        files = self.snapshot.allFiles().sort("path", no_more).offset(first).limit(end - first)
        return self._rows(files.collectAsList())

    def _named(self, wanted: Column) -> list[JavaObject]:
        """The files of which the condition on their path holds."""
        return list(java_items(self.snapshot.allFiles().filter(wanted._jc).collectAsList()))  # noqa: SLF001 the JVM's side

    def _rows(self, files: JavaObject) -> DataFrame:
        """The live rows of files in a list of Java's, which stays on the JVM's side: there may be very many."""
        chosen, none = self.jvm.sequence(files), self.jvm.none
        return self.jvm.frame(self.log.createDataFrame(self.snapshot, chosen, False, none))  # noqa: FBT003 not a stream

    def _files(self) -> DataFrame:
        frame = self.jvm.frame(self.snapshot.allFiles().toDF())
        vector = (F.col(f"deletionVector.{name}").alias(name) for name in _VECTOR)
        return frame.select("path", "baseRowId", *vector)


def _identity(file: JavaObject) -> tuple[str, str]:
    """What tells files apart whose rows are the same, but for those that are hidden: the path, the first row id."""
    return file.path(), file.baseRowId().toString()


def read_version(spark: SparkSession, uri: str, at: int) -> DataFrame:
    """The table as of version `at`, by Delta's public reader."""
    return spark.read.format("delta").option("versionAsOf", at).load(uri)


def read_files(spark: SparkSession, uri: str, at: int, chunk: FileChunk) -> DataFrame:
    """The rows of some files of version `at`, no others being opened, with that version's schema and deletion vectors.

    Which files these are Spark alone decides, so that every file is in just one chunk. Raises SourceUnreadable where it
    sees another number of files than was planned for, and SessionUnfit.
    """
    require_own_reader(spark, "a table larger than `slices.max_rows`")
    table = TableVersion.opened(spark, uri, at)
    if (found := table.snapshot.allFiles().count()) != chunk.files:
        raise SourceUnreadable(uri, f"Spark sees {found} files in version {at}, and its log names {chunk.files}")
    return table.rows_of(chunk.first, chunk.end)
