"""What every step of a table's pipeline needs, and what a read error of its source means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mirror_assets.config import Changes, Config, TableSettings
from mirror_assets.delta.log import SourceLog
from mirror_assets.direct_lake.table.losses import SourceRead, proved
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest, SliceKind
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import LocalStore, Store


@dataclass(frozen=True)
class TableContext:
    """One table's settings, its source's log, the landing zone's store, and a session that starts when it is needed.

    `exchange` is a folder that Spark and this process share, where Spark can't reach the landing zone itself.
    """

    config: Config
    table: TableSettings
    log: SourceLog
    store: Store
    spark: Callable[[], SparkSession]
    local_staging: LocalStore | None = None

    @property
    def name(self) -> TableName:
        """The table's name in the mirror."""
        return self.table.name

    @property
    def staging(self) -> Store:
        """Where Spark writes and reads parts, under the same paths as in the landing zone."""
        return self.local_staging or self.store

    def manifest(self) -> Manifest | None:
        """What has landed, or None. Raises ManifestCorrupt."""
        current = drive(read_manifest(self.name), self.store)
        return current.manifest if current else None


def source_read(table: TableSettings, kind: SliceKind, key: SliceKey) -> SourceRead:
    """What of its source a slice is made from."""
    if kind is SliceKind.SNAPSHOT:
        return SourceRead(key.last, key.last, versions=(key.last,))
    if table.changes is Changes.ROW_TRACKING:
        return SourceRead(key.first, key.last, versions=(key.first - 1, key.last))
    return SourceRead(key.first, key.last)


@contextmanager
def reading(context: TableContext, read: SourceRead) -> Iterator[None]:
    """Raise what Spark's errors in the block mean once log and store have been asked: see `proved`."""
    try:
        yield
    except MirrorError as error:
        meant = proved(str(context.name), context.log, read, error)
        if meant is error:
            raise
        raise meant from error
