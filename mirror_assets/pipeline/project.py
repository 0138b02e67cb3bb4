"""A project: the landing zone's store, the sources' logs, the mirror and the Spark sessions of one configuration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.lakes.errors import CATALOG_TABLE_UNFIT, CATALOG_TABLE_UNKNOWN
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import Mirror
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.spark_sessions import Session, no_spark, session_factory
from mirror_assets.source.log import DeltaLog
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.telemetry.export import exporting
from mirror_assets.zones import LocalStore, Store

if TYPE_CHECKING:
    # Loaded when something opens that needs them: commands that read logs do without.
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Project:
    """The landing zone's store, the sources' logs and the Spark sessions of one configuration.

    `session` opens the session of an owner, or a new one for None.
    """

    config: Config
    store: Store
    local_staging: LocalStore | None
    session: Session

    def log(self, name: TableName) -> DeltaLog:
        """Return the log of the table's source; nothing is read yet."""
        return source_log(self.config, self.config.table(str(name)), self.session)

    def table(self, table: TableSettings) -> TableContext:
        """Return the context of the table's pipeline; a Spark session starts when a step asks for it."""
        log = self.log(table.name)
        return TableContext(
            self.config, table, log, self.store, session_factory(log, self._of_thread), self.local_staging
        )

    @cached_property
    def _of_thread(self) -> Callable[[], SparkSession]:
        """Opens one session for each thread that asks.

        Tables that work at the same time share no settings, and memory does not grow with the number of tables.
        """
        local = threading.local()

        def opened() -> SparkSession:
            from mirror_assets.encode.connect import is_usable, require_shared

            if not hasattr(local, "session") or not is_usable(local.session):
                session = self.session(threading.current_thread().name)
                if self.local_staging is not None:
                    require_shared(session, Path(self.local_staging.root))
                local.session = session  # only one that passed: the next call doesn't try again
            found: SparkSession = local.session
            return found

        return opened

    def tables(self, names: Sequence[str] = ()) -> list[TableContext]:
        """Return the contexts of these tables, or of all. Raises TABLE_UNKNOWN."""
        return [self.table(table) for table in self.config.chosen(names)]

    def mirror(self) -> Mirror:
        """Return the mirror of the landing zone: the database in Fabric, or the local stand-in's tables."""
        return open_mirror(self.config, self.store)


def source_log(config: Config, table: TableSettings, session: Session | None = None) -> DeltaLog:
    """Return the log of the table's source; nothing is read yet.

    Without `session`, where a catalog of Spark keeps its tables is what it said last. Raises LOCATION_UNKNOWN then.
    """
    if not config.is_of_catalog(table.source):
        return DeltaLog(table.source, config.access(table.source))
    in_spark = None if session is None or session is no_spark else partial(find_in_spark, session, str(table.name))
    return DeltaLog(table.source, locate=partial(config.locate, table.source, in_spark))


def find_in_spark(session: Session, table: str, catalog: str, name: str) -> str:
    """Return where a catalog of Spark keeps what is called `name` there, and `table` in the mirror.

    Raises CATALOG_TABLE_UNKNOWN and CATALOG_TABLE_UNFIT.
    """
    from mirror_assets.encode.spark_catalogs import find_table

    found = find_table(session("catalogs"), catalog, name)
    if found is None:
        raise CATALOG_TABLE_UNKNOWN(what=f"{table}, {name}", catalog=catalog, why="Spark does not find it")
    if found.provider != "delta" or found.location is None:
        raise CATALOG_TABLE_UNFIT(
            what=f"{table}, {name}", catalog=catalog, kind=f"a {found.kind} {found.provider}".strip()
        )
    return found.location


def exporting_metrics(
    config: Config, warn: Callable[[str], None], *, is_resident: bool = False, batch: int | None = None
) -> AbstractContextManager[None]:
    """Return a context manager that exports metrics and traces while its block runs, if `metrics` is configured.

    Only a resident run opens a port; batches have ports of their own.
    """
    prometheus, otlp = config.metrics.prometheus, config.metrics.otlp
    port = prometheus.port + (batch or 0) if is_resident and prometheus.port is not None else None
    return exporting(warn, port=port, endpoint=otlp.endpoint)


def open_mirror(config: Config, store: Store) -> Mirror:
    """Return the mirror of the landing zone in `store`; it makes no request yet.

    Raises CREDENTIAL_INCOMPLETE, and `Config.unset.zone_error`.
    """
    if config.unset.zone_error is not None:
        raise config.unset.zone_error
    place = config.mirror_place
    return stand_in(config, store) if place is None else place.open(store)


def stand_in(config: Config, store: Store) -> LocalReplicator:
    """Return the local stand-in for Fabric's replicator."""
    return LocalReplicator(store, config.mirror.path)
