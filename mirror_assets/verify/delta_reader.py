"""Reads Delta tables by Delta's public reader alone, for `reconcile`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession

# Delta caches a table's newest state in the JVM, and takes it for current while version and time of the newest commit
# are the same. Its key is the path with the options that begin with `fs.`, so another value opens the table afresh.
_CACHE_KEY = "fs.mirror_assets.opened_for"


@dataclass(frozen=True)
class DeltaReader:
    """The table at a path. Delta's cached state is used only by readers with the same `opened_for`."""

    spark: SparkSession
    uri: str
    opened_for: str

    @property
    def id(self) -> str:
        """The table's id in its newest version: a table that is made again at the path has another one."""
        return str(self._detail["id"])

    @property
    def bytes(self) -> int:
        """The size of the files of its newest version."""
        return int(self._detail["sizeInBytes"] or 0)

    @cached_property
    def newest(self) -> int:
        """Its newest version."""
        return int(self._table.history(1).collect()[0]["version"])

    def rows(self, version: int) -> DataFrame:
        """Return all rows as of a version."""
        reader = self.spark.read.format("delta").options(**self._options)
        return reader.option("versionAsOf", version).load(self.uri)

    @cached_property
    def _detail(self) -> Row:
        return self._table.detail().collect()[0]

    @property
    def _table(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.uri, self._options)

    @property
    def _options(self) -> dict[str, str]:
        return {_CACHE_KEY: self.opened_for}
