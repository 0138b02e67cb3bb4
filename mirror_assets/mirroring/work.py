"""What every step of a table's mirroring needs at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mirror_assets.config import Config, TableSettings
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.source.log import SourceLog
from mirror_assets.storage import LocalStore, Store


@dataclass(frozen=True)
class TableWork:
    """One table's settings, its source's log, the landing zone's store, and a session that starts when it is needed.

    `exchange` is a folder that Spark and this process share, where Spark can't reach the landing zone itself.
    """

    config: Config
    table: TableSettings
    log: SourceLog
    store: Store
    spark: Callable[[], SparkSession]
    exchange: LocalStore | None = None

    @property
    def name(self) -> TableName:
        """The table's name in the mirror."""
        return self.table.name

    @property
    def staging(self) -> Store:
        """Where Spark writes and reads parts, under the same paths as in the landing zone."""
        return self.exchange or self.store

    def manifest(self) -> Manifest | None:
        """What has landed, or None. Raises ManifestCorrupt."""
        standing = drive(read_manifest(self.name), self.store)
        return standing.manifest if standing else None
