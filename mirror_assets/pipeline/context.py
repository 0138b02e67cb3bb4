"""The context of a table's pipeline, and the meaning of errors in it: data was lost, or another run was faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import LOST_RACE
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import SNAPSHOT_LOST
from mirror_assets.source.errors import DATA_FILE_MISSING
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.losses import SourceRead, proved
from mirror_assets.spark_names import spark_path
from mirror_assets.telemetry.record import SliceWork
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.zones import LocalStore, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # planning and status start without loading it


@dataclass(frozen=True)
class TableContext:
    """One table's settings, its source's log, the landing zone's store, and a session that starts when it is needed.

    `local_staging` is a folder that Spark and this process share, for a Spark that can't reach the landing zone.
    `newest_row_check` has the result of the newest `row_conservation`, by attempt and ETags of the parts.
    """

    config: Config
    table: TableSettings
    log: DeltaLog
    store: Store
    spark: Callable[[], SparkSession]
    local_staging: LocalStore | None = None
    newest_row_check: dict[tuple[str, tuple[str, ...]], CheckResult] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> TableName:
        """Return the table's name in the mirror."""
        return self.table.name

    @property
    def source(self) -> str:
        """Return the source's address as Spark takes it; a catalog is asked the first time."""
        return spark_path(self.log.uri)

    @property
    def staging(self) -> Store:
        """Return the store where Spark writes and reads parts; paths are those of the landing zone."""
        return self.local_staging or self.store

    def work(self, key: SliceKey) -> SliceWork:
        """Return the slice as metrics and traces name it."""
        return SliceWork(self.store.root, str(self.name), str(key))

    def manifest(self) -> Manifest | None:
        """Return the manifest, or None before the first slice has landed. Raises ManifestCorrupt."""
        current = drive(read_manifest(self.name), self.store)
        return current.manifest if current else None


def manifest_or_none(store: Store, table: TableName) -> Manifest | None:
    """Return the table's manifest, or None where there is none that can be read."""
    try:
        current = drive(read_manifest(table), store)
    except MirrorError:
        return None
    return current.manifest if current else None


@contextmanager
def reading(context: TableContext, read: SourceRead) -> Iterator[None]:
    """Translate an error of Spark in the block into a loss of the source, if log and store prove one (`proved`)."""
    try:
        yield
    except MirrorError as error:
        meant = proved(str(context.name), context.log, read, error)
        if meant is error:
            raise
        raise meant from error


def has_landed(manifest: Manifest | None, epoch: int, generation: int) -> bool:
    """Return whether that generation, or a later one, has landed."""
    return manifest is not None and (manifest.epoch, manifest.generation) >= (epoch, generation)


@contextmanager
def not_overtaken(context: TableContext, epoch: int, generation: int, key: SliceKey) -> Iterator[None]:
    """Translate an error in the block into LostRace when that generation has landed meanwhile.

    The run that landed it may have deleted the files of the block. Raises SNAPSHOT_LOST in the place of
    DATA_FILE_MISSING while a snapshot is loaded in chunks: its version can't be read any more.
    """
    try:
        yield
    except MirrorError as error:
        manifest = context.manifest()
        if manifest is None or manifest.epoch < epoch:
            raise
        if has_landed(manifest, epoch, generation):
            raise LOST_RACE(table=str(context.name), key=str(key)) from error
        if isinstance(error, DATA_FILE_MISSING.error) and manifest.loading is not None:
            raise SNAPSHOT_LOST(table=str(context.name), loading=manifest.loading, why=error.what) from error
        raise
