"""Reads the change feed of a range of commits: by Delta's own reader where it is proved, else by readChangeFeed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, quoted
from mirror_assets.encode.private.cdc_reader import CdcReader
from mirror_assets.encode.private.table_version import TableVersion, has_own_reader, require_own_reader
from mirror_assets.encode.private.vector_changes import read_with_vectors


@dataclass(frozen=True)
class ChangeFeed:
    """The change feed of the table at `uri`, in the schema of version `last`; the table is opened once.

    A range of commits has scans of its own: to choose among the files of more commits, Delta runs a query for each.
    `vector_versions` are commits whose deletion vectors are compared together: each file is read once for all of them.
    """

    spark: SparkSession
    uri: str
    last: int
    vector_versions: tuple[int, ...] = ()

    def rows(self, first: int, last: int) -> DataFrame:
        """The rows of the commits `first` to `last`: the table's columns and Delta's three."""
        if not has_own_reader(self.spark):
            return read_changes_public(self.spark, self.uri, first, last)
        feed = CdcReader(self._table, first, last)
        vectors = frozenset(version for version in self.vector_versions if first <= version <= last)
        return read_with_vectors(feed, vectors) if vectors else feed.changes()

    @cached_property
    def _table(self) -> TableVersion:
        return TableVersion.opened(self.spark, self.uri, self.last)


def read_changes(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int] = ()
) -> DataFrame:
    """The change feed of commits `first` to `last`, in the schema of the last; `vector_versions` as for ChangeFeed."""
    return ChangeFeed(spark, uri, last, tuple(vector_versions)).rows(first, last)


def feed_rows(
    spark: SparkSession, uri: str, first: int, last: int, vector_versions: Sequence[int], limit: int
) -> tuple[str, ...]:
    """Up to `limit` rows of the same, ordered by version, each as a JSON object that begins with Delta's columns."""
    frame = read_changes(spark, uri, first, last, vector_versions)
    names = [COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE]
    names += [name for name in frame.columns if name not in names]
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), {"ignoreNullFields": "false"})
    return tuple(found[0] for found in frame.orderBy(COMMIT_VERSION).limit(limit).select(row).collect())


def read_appends(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """The rows of files that commits `first` to `last` add, as inserts, and of those that they remove, as deletes.

    It needs no change data feed, and ignores one. Delta has no public reader for it: raises SessionUnfit where the
    private one can't be used.
    """
    require_own_reader(spark, "`changes: append_only`")
    return CdcReader(TableVersion.opened(spark, uri, last), first, last).changes(coarse=True)


def read_changes_public(spark: SparkSession, uri: str, first: int, last: int) -> DataFrame:
    """The same through Delta's public reader; also the oracle of the fast one."""
    return (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", last)
        .load(uri)
    )
