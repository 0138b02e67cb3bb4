"""The composition root: what a configuration opens, for Dagster's resources, the command line and tests alike.

Nothing is read, requested or started before it is needed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.config.variables import fill_settings, has_reference
from mirror_assets.errors import MirrorError
from mirror_assets.lakes.access import Locate
from mirror_assets.lakes.azure import VARIABLE, start_token_server, storage_token
from mirror_assets.lakes.catalogs import VendedTable, last_address
from mirror_assets.lakes.errors import CATALOG_TABLE_UNFIT, CATALOG_TABLE_UNKNOWN, SPARK_CANNOT_SIGN_IN, STORES_COLLIDE
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import Mirror
from mirror_assets.pipeline.context import TableContext
from mirror_assets.redaction import hide
from mirror_assets.source.log import DeltaLog
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.telemetry.export import exporting
from mirror_assets.telemetry.scope import current_scope
from mirror_assets.zones import LocalStore, Store

if TYPE_CHECKING:
    # Loaded when something opens that needs them: commands that read logs do without.
    from pyspark.sql import SparkSession

    from mirror_assets.encode.vended import CatalogKeys


# Opens the Spark session of an owner, or a new one for None.
Session: TypeAlias = "Callable[[str | None], SparkSession]"


@dataclass(frozen=True)
class Project:
    """The landing zone's store, the sources' logs and the Spark sessions of one configuration.

    `session` opens the session of an owner, or a new one for None.
    """

    config: Config
    store: Store
    local_staging: LocalStore | None
    session: Session

    @classmethod
    def of(
        cls, config: Config, session: Session | None = None, report: Callable[[str], None] = lambda _: None
    ) -> Project:
        """Compose what mirror.yaml names; `session` replaces Spark's; `report` takes a line when Spark starts.

        A session that `session` returns is never changed: its owner gets one that is made from it. Raises what
        `Zone.open` raises.
        """
        settings = cache(partial(SparkSettings.of, config))  # of every source's store: only Spark needs them
        if session is None:
            opened = reporting_start(lambda owner: settings().open(owner), report)
        else:
            opened = session if session is no_spark else partial(session_from, session)
        return cls(config, config.zone.open(), config.zone.local_staging(), opened)

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
        """Return what opens one session for each thread that asks.

        Tables that work at the same time share no settings, and memory does not grow with the number of tables.
        """
        local = threading.local()

        def session() -> SparkSession:
            if not hasattr(local, "session"):
                local.session = self.session(threading.current_thread().name)
            opened: SparkSession = local.session
            return opened

        return session

    def tables(self, names: Sequence[str] = ()) -> list[TableContext]:
        """Return the contexts of these tables, or of all. Raises TableUnknown."""
        return [self.table(table) for table in self.config.chosen(names)]

    def mirror(self) -> Mirror:
        """Return the mirror of the landing zone: the database in Fabric, or the local stand-in's tables."""
        return open_mirror(self.config, self.store)


def session_from(session: Session, owner: str | None) -> SparkSession:
    """Return the owner's session, made from the one that `session` returns. Raises what `own_session` raises."""
    from mirror_assets.encode.session import own_session

    return own_session(session(owner), owner)


def reporting_start(session: Session, report: Callable[[str], None]) -> Session:
    """Return `session` with a line for `report` before and after it starts Spark; other threads wait meanwhile."""
    starting = threading.Lock()

    def opened(owner: str | None) -> SparkSession:
        from mirror_assets.encode.session import spark_has_started

        if spark_has_started():
            return session(owner)
        with starting:
            if spark_has_started():
                return session(owner)
            report("Starting Spark: this can take 20 s")
            began = time.monotonic()
            found = session(owner)
            report(f"Spark has started in {time.monotonic() - began:.1f} s")
            return found

    return opened


def source_log(config: Config, table: TableSettings, session: Session | None = None) -> DeltaLog:
    """Return the log of the table's source; nothing is read yet.

    Without `session`, where a catalog of Spark keeps its tables is what it said last. Raises LocationUnknown then.
    """
    locate = locator(config, table, session)
    return DeltaLog(table.source, locate=locate) if locate else DeltaLog(table.source, config.access(table.source))


def locator(config: Config, table: TableSettings, session: Session | None) -> Locate | None:
    """Return the function that asks the catalog for the table's address; None for a source with an address."""
    if not config.is_of_catalog(table.source):
        return None
    in_spark = None if session is None or session is no_spark else partial(find_in_spark, session, str(table.name))
    return partial(config.locate, table.source, in_spark)


def find_in_spark(session: Session, table: str, catalog: str, name: str) -> str:
    """Return where a catalog of Spark keeps what is called `name` there, and `table` in the mirror.

    Raises catalog_table_unknown and catalog_table_unfit.
    """
    from mirror_assets.encode.spark_catalog import find_table

    found = find_table(session("catalogs"), catalog, name)
    if found is None:
        raise CATALOG_TABLE_UNKNOWN(what=f"{table}, {name}", catalog=catalog, why="Spark does not find it")
    if found.provider != "delta" or found.location is None:
        raise CATALOG_TABLE_UNFIT(
            what=f"{table}, {name}", catalog=catalog, kind=f"a {found.kind} {found.provider}".strip()
        )
    return found.location


def session_factory(source: DeltaLog, session: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    """Return a factory for Spark sessions that hold the catalog credentials of this source, or none."""

    def opened() -> SparkSession:
        from mirror_assets.encode.session import describe_jobs
        from mirror_assets.encode.vended import use_keys

        spark, scope = session(), current_scope()
        use_keys(spark, catalog_keys(source))
        describe_jobs(spark, scope.text if scope else None)
        return spark

    return opened


def catalog_keys(source: DeltaLog) -> CatalogKeys | None:
    """Return what Spark needs to read the source with its catalog's keys; None where no catalog hands out any."""
    from mirror_assets.encode.vended import CatalogKeys

    access = source.access
    if not isinstance(access, VendedTable):
        return None
    client, token = access.client, access.client.token()
    if token and client.token_variable:
        hide(client.token_variable, token)
    return CatalogKeys(
        f"{access.name} of the catalog {client.label}",
        client.server,
        access.table_id,
        access.address.scheme.value,
        token,
        access.store.reach_settings(),
        access.store.own_names(),
    )


def no_spark(owner: str | None = None) -> NoReturn:
    """Stand in the place of a session where only logs and the landing zone are read. Raises RuntimeError."""
    raise RuntimeError(f"{owner} asks for Spark where none may start")


@dataclass(frozen=True)
class SparkSettings:
    """The settings of Spark sessions beside this project's own.

    `reach` is how stores are reached, `packages` the JARs for them, `written` what mirror.yaml sets, with references to
    environment variables that are resolved when a session opens. `of_catalogs` asks catalogs for the addresses of
    their tables, and returns the JARs for these.
    """

    reach: Mapping[str, str]
    written: Mapping[str, str]
    packages: Sequence[str] = ()
    jars_folder: Path | None = None
    of_catalogs: Callable[[], Sequence[str]] = tuple

    @classmethod
    def of(cls, config: Config) -> SparkSettings:
        """Return the settings of a configuration; they have only the stores that Spark has to reach.

        Raises stores_collide.
        """
        reach, packages = spark_reach(config)
        return cls(reach, config.spark.settings, packages, config.spark.jars_folder, packages_of_catalogs(config))

    def filled(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return all settings with environment variables resolved.

        Raises variable_unset, package_refused and jars_missing.
        """
        from mirror_assets.encode.session import spark_settings

        written = fill_settings(self.written, environment)
        packages = (*self.packages, *self.of_catalogs())
        return spark_settings({**self.reach, **written}, packages, self.jars_folder)

    def shown(self) -> dict[str, str]:
        """Return the settings that may appear in the JVM's command line. Raises what `filled` raises."""
        return self._filled_apart()[0]

    def open(self, owner: str | None = None, *, is_brief: bool = False) -> SparkSession:
        """Return the owner's session, or a new one.

        Raises variable_unset, package_refused, jars_missing, spark_cannot_sign_in and SparkNotStarted. `is_brief`: if
        this call starts Spark, its JVM is one for small slices.
        """
        from mirror_assets.encode.quick_start import for_brief_work
        from mirror_assets.encode.session import open_session

        shown, secret = self._filled_apart()
        if any(f"{{env.{VARIABLE}}}" in value for value in self.reach.values()):
            if not shown["spark.master"].startswith("local"):
                raise SPARK_CANNOT_SIGN_IN(master=shown["spark.master"])
            start_token_server(storage_token)
        return open_session(for_brief_work(shown) if is_brief else shown, secret, owner)

    def _filled_apart(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the filled settings for the JVM's command line, and the secret ones, which only a session gets."""
        filled = self.filled()
        secret = {n for n, text in self.written.items() if n.startswith("spark.hadoop.") and has_reference(text)}
        shown = {name: value for name, value in filled.items() if name not in secret}
        return shown, {name: filled[name] for name in secret}


def exporting_metrics(
    config: Config, warn: Callable[[str], None], *, is_resident: bool = False, batch: int | None = None
) -> AbstractContextManager[None]:
    """Return a context manager that exports metrics and traces while its block runs, if `metrics` is configured.

    Only a resident run opens a port; batches have ports of their own.
    """
    prometheus, otlp = config.metrics.prometheus, config.metrics.otlp
    port = prometheus.port + (batch or 0) if is_resident and prometheus.port is not None else None
    return exporting(warn, port=port, endpoint=otlp.endpoint)


def packages_of_catalogs(config: Config) -> Callable[[], Sequence[str]]:
    """Return what finds the packages for the tables of catalogs, once; an unreachable catalog is left out."""

    def find(source: str) -> str | None:
        known = last_address(source, config.catalogs)
        try:
            return known or config.locate(source).uri
        except MirrorError:
            return None  # reading the table reports the reason

    return cache(lambda: config.catalog_packages(find))


def open_spark(config: Config, owner: str | None = None, *, is_brief: bool = False) -> SparkSession:
    """Return the owner's session, or a new one. Raises variable_unset, package_refused and SparkNotStarted.

    `is_brief`: see `SparkSettings.open`.
    """
    return SparkSettings.of(config).open(owner, is_brief=is_brief)


def spark_reach(config: Config) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the Spark settings and the packages for the stores of the sources, and for the landing zone.

    Where Spark doesn't write to the landing zone, for the mirrored tables of a feature. Raises stores_collide.
    """
    place, stores = config.mirror_place, config.lake_stores()
    own = config.zone.spark_reach or (place.spark_reach if place else None)
    reach = dict(own.settings) if own else {}
    packages = (*(package for store in stores for package in store.packages), *(own.packages if own else ()))
    for store in stores:
        for name, value in store.hadoop_settings().items():
            if reach.setdefault(name, value) != value:
                raise STORES_COLLIDE(root=store.root.uri, setting=name)
    return {f"spark.hadoop.{name}": value for name, value in reach.items()}, tuple(dict.fromkeys(packages))


def open_mirror(config: Config, store: Store) -> Mirror:
    """Return the mirror of the landing zone in `store`; it makes no request yet. Raises credential_incomplete."""
    place = config.mirror_place
    return stand_in(config, store) if place is None else place.open(store)


def stand_in(config: Config, store: Store) -> LocalReplicator:
    """Return the local stand-in for Fabric's replicator."""
    return LocalReplicator(store, config.mirror.path)
