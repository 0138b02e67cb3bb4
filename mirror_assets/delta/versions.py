"""A version of a table as Delta's own classes hold it: the way to read chosen files of it.

The rows come from Delta's reader, so deletion vectors, column mapping and partition values are its business. These
classes are private: they are used only in a classic session and with the Delta version on which tests prove them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.jvm import Jvm, java_items
from mirror_assets.delta.spark_errors import SessionUnfit
from mirror_assets.delta.vectors import Vectors
from mirror_assets.source.batching import FileChunk
from mirror_assets.source.errors import SourceUnreadable

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
