"""Reads the change feed of a range of commits: by Delta's private CDCReader where proved, else by readChangeFeed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.columns import projected
from mirror_assets.encode.private.cdc_reader import CdcReader
from mirror_assets.encode.private.table_version import TableVersion, has_own_reader, require_own_reader
from mirror_assets.encode.private.vector_changes import read_with_vectors
from mirror_assets.source.projection import ALL_ROWS, Projection


@dataclass(frozen=True)
class ChangeFeed:
    """Reads the landing rows of the change feed of the table at `uri`, in the schema of version `last`.

    Opens the table once.

    `vector_versions` are commits that change deletion vectors: their vectors are compared together, so that Spark reads
    each data file once for all of them.
    """

    spark: SparkSession
    uri: str
    last: int
    vector_versions: tuple[int, ...] = ()
    projection: Projection = ALL_ROWS
    _opened: list[TableVersion] = field(default_factory=list, compare=False, repr=False)

    def rows(self, first: int, last: int) -> DataFrame:
        """Return the change rows of commits `first` to `last`: the table's columns, then Delta's three."""
        if not has_own_reader(self.spark):
            return projected(read_changes_public(self.spark, self.uri, first, last), self.projection)
        feed = CdcReader(self._table, first, last)
        vectors = frozenset(version for version in self.vector_versions if first <= version <= last)
        return projected(read_with_vectors(feed, vectors) if vectors else feed.changes(), self.projection)

    @property
    def _table(self) -> TableVersion:
        # Before Python 3.12, the lock of a cached_property is one for all tables: they would open one after the other.
        if not self._opened:
            self._opened.append(TableVersion.opened(self.spark, self.uri, self.last))
        return self._opened[0]


def read_changes(
    spark: SparkSession,
    uri: str,
    first: int,
    last: int,
    vector_versions: Sequence[int] = (),
    projection: Projection = ALL_ROWS,
) -> DataFrame:
    """Return the change feed of commits `first` to `last` in the schema of `last`; see ChangeFeed."""
    return ChangeFeed(spark, uri, last, tuple(vector_versions), projection).rows(first, last)


def read_appends(spark: SparkSession, uri: str, first: int, last: int, projection: Projection = ALL_ROWS) -> DataFrame:
    """Return the rows of data files that commits `first` to `last` add as inserts, and of removed files as deletes.

    The table needs no change data feed; an existing one is ignored. Delta has no public reader for this: raises
    session_unfit without the private one.
    """
    require_own_reader(spark, "`changes: append_only`")
    return projected(CdcReader(TableVersion.opened(spark, uri, last), first, last).changes(coarse=True), projection)


def read_changes_public(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """Return the change feed by Delta's public reader; tests compare the private reader with it."""
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", last)
        .load(uri)
    )
