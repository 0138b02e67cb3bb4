"""Opens a table version by Delta's private classes, and reads chosen data files with deletion vectors applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import projected
from mirror_assets.encode.private.jvm import Jvm, java_items
from mirror_assets.encode.spark_errors import session_unfit
from mirror_assets.source.batching import FileChunk
from mirror_assets.source.errors import SourceUnreadable
from mirror_assets.source.projection import ALL_ROWS, Projection


@dataclass(frozen=True)
class Vectors:
    """Reads and compares the deletion vectors of one table; loads each vector once."""

    jvm: Jvm
    store: JavaObject
    folder: JavaObject
    _read: dict[str, JavaObject] = field(default_factory=dict)

    @classmethod
    def of(cls, jvm: Jvm, log: JavaObject) -> Vectors:
        """Return the deletion vectors of the table with this DeltaLog."""
        stores = jvm.singleton(jvm.delta.storage.dv, "DeletionVectorStore")
        return cls(jvm, stores.createInstance(log.newDeltaHadoopConf()), log.dataPath())

    def no_rows(self) -> JavaObject:
        """Return an empty bitmap."""
        return self._bitmap()

    def hidden_only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """Return a bitmap of the rows that `file` hides and `other`, the same data file, shows; None if there is none.

        The bitmap may be a cached one: don't change it.
        """
        hidden, shown_not = self._hidden(file), self._hidden(other)
        if hidden is None or shown_not is None:
            return hidden
        rest = hidden.copy()
        rest.andNot(shown_not)
        return None if rest.isEmpty() else rest

    def only_in(self, file: JavaObject, other: JavaObject) -> JavaObject | None:
        """Return the file with a vector that shows only rows that `other`, the same data file, hides; None if no row.

        Returns the file unchanged if the statistics of neither give the number of stored rows. Then the same call for
        `other` returns that unchanged, so a comparison reads all rows of both, and pairs those that stay.
        """
        counts = (one.numPhysicalRecords() for one in (file, other))
        stored = next((count for count in counts if count.isDefined()), None)
        if stored is None:
            return file
        shown = self.hidden_only_in(other, file)
        if shown is None:
            return None
        rest, ranges = self.no_rows(), self.jvm.singleton(self.jvm.root.scala.collection.immutable, "Range")
        rest.addRange(ranges.apply(0, stored.get(), 1))
        rest.andNot(shown)
        return self.with_vector(file, rest)

    def with_vector(self, file: JavaObject, rows: JavaObject) -> JavaObject:
        """Return the file's AddFile action with its deletion vector replaced by one that names these rows."""
        delta = self.jvm.delta
        rows.runOptimize()
        portable = self.jvm.singleton(delta.deletionvectors, "RoaringBitmapArrayFormat").Portable()
        inline = delta.actions.DeletionVectorDescriptor.inlineInLog(
            rows.serializeAsByteArray(portable), rows.cardinality()
        )
        action = json.loads(file.json())  # Scala's `copy` needs every field by position
        action["add"]["deletionVector"] = {
            "storageType": inline.storageType(),
            "pathOrInlineDv": inline.pathOrInlineDv(),
            "sizeInBytes": inline.sizeInBytes(),
            "cardinality": inline.cardinality(),
        }
        return delta.actions.Action.fromJson(json.dumps(action))

    def _hidden(self, file: JavaObject) -> JavaObject | None:
        """Return the rows that the file's vector hides; None without a vector."""
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
_Files: TypeAlias = Mapping[tuple[str, str], JavaObject]


def has_own_reader(spark: SparkSession) -> bool:
    """Return whether tests have proved Delta's private classes on the Delta version of the session's JARs."""
    return _delta_version(spark) in _PROVED_VERSIONS


def require_own_reader(spark: SparkSession, purpose: str) -> None:
    """Raise session_unfit, naming the purpose, unless `has_own_reader`."""
    if not has_own_reader(spark):
        raise session_unfit(purpose, _delta_version(spark), sorted(_PROVED_VERSIONS))


def _delta_version(spark: SparkSession) -> str:
    """Return the version of the JARs, which a platform or a user's settings may have brought."""
    package = getattr(Jvm(spark).root.io.delta, "package$")
    return str(getattr(package, "MODULE$").VERSION()) if isinstance(package, JavaClass) else "of its platform"


@dataclass(frozen=True)
class FileRows:
    """Rows of chosen files, the size in bytes of the files that are read whole, and that of all files."""

    frame: DataFrame
    bytes: int
    opened_bytes: int


@dataclass(frozen=True)
class TableVersion:
    """A table's DeltaLog, and its Snapshot at one version."""

    jvm: Jvm
    log: JavaObject
    snapshot: JavaObject

    @classmethod
    def opened(cls, spark: SparkSession, uri: str, at: int) -> TableVersion:
        """Open version `at` of the table, and make the session the calling thread's active one.

        Raises what Spark raises when the log can't reconstruct the version any more.
        """
        jvm = Jvm(spark)
        jvm.activate()
        log = jvm.delta.DeltaLog.forTable(jvm.session, uri)
        return cls(jvm, log, log.getSnapshotAt(at, jvm.none, jvm.none, jvm.none, False))  # noqa: FBT003 py4j has no keywords

    @property
    def commit_ms(self) -> int:
        """When the version was committed, by the table's log: differs if another commit has its number by now."""
        return int(self.snapshot.timestamp())

    @property
    def table_id(self) -> str:
        """The table's id, which a table that replaces it doesn't have."""
        return str(self.snapshot.metadata().id())

    @property
    def schema_json(self) -> str:
        """Its columns, with their metadata."""
        return str(self.snapshot.schema().json())

    @property
    def bytes(self) -> int:
        """Size of its files."""
        return int(self.snapshot.sizeInBytes())

    def differences(self, other: TableVersion, projection: Projection = ALL_ROWS) -> tuple[FileRows, FileRows]:
        """Return a superset of the landing rows that only this version of the table has, and that only `other` has.

        Each has the live rows of files that the other version lacks, and of files that both have with different
        deletion vectors, the live rows that the other version hides. Only the former files, read whole, count for the
        bytes. Rows that both versions have are in both results, or in none.
        """
        files = self._files().union(other._files())
        found = files.groupBy(*files.columns).count().where("count = 1").select("path").distinct().collect()
        wanted = F.col("path").isin([row["path"] for row in found])
        ours = {_identity(file): file for file in self._named(wanted)}
        theirs = {_identity(file): file for file in other._named(wanted)}
        vectors = Vectors.of(self.jvm, self.log)
        return self._only(ours, theirs, vectors, projection), other._only(theirs, ours, vectors, projection)

    def _only(self, ours: _Files, theirs: _Files, vectors: Vectors, projection: Projection) -> FileRows:
        """Return the landing rows of our files that are not among theirs, or that their deletion vectors hide."""
        whole = [file for identity, file in ours.items() if identity not in theirs]
        parts = (vectors.only_in(file, theirs[identity]) for identity, file in ours.items() if identity in theirs)
        chosen = (*whole, *(part for part in parts if part is not None))
        bytes_, opened = (sum(file.size() for file in files) for files in (whole, chosen))
        return FileRows(self._rows(self.jvm.java_list(chosen), projection), bytes_, opened)

    def rows_of(self, first: int, end: int, projection: Projection = ALL_ROWS) -> DataFrame:
        """Return the landing rows of files `first` to `end` - 1, numbered in order of their paths."""
        no_more = self.jvm.array(self.jvm.root.java.lang.String)
        files = self.snapshot.allFiles().sort("path", no_more).offset(first).limit(end - first)
        return self._rows(files.collectAsList(), projection)

    def _named(self, wanted: Column) -> list[JavaObject]:
        """Return the files whose path meets the condition."""
        return list(java_items(self.snapshot.allFiles().filter(wanted._jc).collectAsList()))  # noqa: SLF001 the Scala column

    def _rows(self, files: JavaObject, projection: Projection) -> DataFrame:
        """Return the landing rows of the files in a Java list, which stays in the JVM because it may be very long."""
        chosen, none = self.jvm.sequence(files), self.jvm.none
        frame = self.log.createDataFrame(self.snapshot, chosen, False, none)  # noqa: FBT003 not a stream
        return projected(self.jvm.frame(frame), projection)

    def _files(self) -> DataFrame:
        frame = self.jvm.frame(self.snapshot.allFiles().toDF())
        vector = (F.col(f"deletionVector.{name}").alias(name) for name in _VECTOR)
        return frame.select("path", "baseRowId", *vector)


def _identity(file: JavaObject) -> tuple[str, str]:
    """Return path and first row id: equal for AddFile actions of one data file that differ only in deletion vectors."""
    return file.path(), file.baseRowId().toString()


def read_version(spark: SparkSession, uri: str, at: int, projection: Projection = ALL_ROWS) -> DataFrame:
    """Return the landing rows of the table as of version `at`, by Delta's public reader."""
    return projected(spark.read.format("delta").option("versionAsOf", at).load(uri), projection)


def read_files(
    spark: SparkSession, uri: str, at: int, chunk: FileChunk, projection: Projection = ALL_ROWS
) -> DataFrame:
    """Return the landing rows of a chunk of the files of version `at`, with that version's schema and deletion vectors.

    Spark sorts the files by path and opens only the chunk's, so every file is in exactly one chunk. Raises
    SourceUnreadable when the version has another number of files than the plan, and session_unfit.
    """
    require_own_reader(spark, "a table larger than `slices.max_rows`")
    table = TableVersion.opened(spark, uri, at)
    if (found := table.snapshot.allFiles().count()) != chunk.files:
        raise SourceUnreadable(uri, f"Spark sees {found} files in version {at}, and its log names {chunk.files}")
    return table.rows_of(chunk.first, chunk.end, projection)
