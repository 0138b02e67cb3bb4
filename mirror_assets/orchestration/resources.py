"""Dagster's resources: the landing zone, the source tables, Spark sessions; each wraps Dagster-free code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

import dagster as dg
from dagster import ConfigurableResource, ResourceDefinition, mem_io_manager
from dagster_deltalake import DeltaTableResource, LocalConfig
from dagster_pyspark import LazyPySparkResource
from deltalake import DeltaTable
from pydantic import Field, PrivateAttr
from pyspark import SparkContext
from pyspark.sql import SparkSession

from mirror_assets.composition import (
    Project,
    Session,
    SparkSettings,
    locator,
    no_spark,
    open_local_staging,
    open_mirror,
    open_zone,
    reporting_start,
)
from mirror_assets.config import Config, LandingZoneConfig, OneLakeConfig
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.landing.names import TableName
from mirror_assets.source.access import Access, Locate, PlainAccess
from mirror_assets.source.delta_rs import load_table
from mirror_assets.source.log import DeltaLog
from mirror_assets.storage import LocalStore, Store

# `partnerName` in _partnerEvents.json. Fabric requires that it never changes.
_PARTNER = "mirror_assets"


class OneLake(dg.Config):
    """A mirrored database on OneLake; docs/configuration.md says what each setting means. None of them is a secret."""

    url: str
    credential: str = "default"
    staging: str = "upload"
    staging_path: str = "staging"
    api_version: str | None = None
    ca_bundle: str | None = None


class LandingZone(dg.ConfigurableResource[None]):
    """Where landing files go.

    .. code-block:: python

        LandingZone(path="/data/landing").store().list("")
        LandingZone(onelake=OneLake(url="https://onelake.dfs.fabric.microsoft.com/..../Files/LandingZone"))
    """

    path: str | None = Field(default=None, description="Folder of the landing zone on this machine.")
    onelake: OneLake | None = Field(default=None, description="The landing zone on OneLake.")

    def open(self) -> Store:
        """Return the landing zone's store; it makes no request yet."""
        return open_zone(self._place())

    def store(self) -> Store:
        """Return the store with its partner file in place, for publishers."""
        store = self.open()
        ensure_partner_events(store, _PARTNER, {"sourceType": "Delta Lake", "sourceVersion": ""})
        return store

    def local_staging(self) -> LocalStore | None:
        """Return the folder where Spark stages parts, or None when it reaches the landing zone itself."""
        return open_local_staging(self._place())

    def _place(self) -> LandingZoneConfig:
        if self.onelake is None:
            return LandingZoneConfig.model_validate({"path": self.path})
        return LandingZoneConfig(onelake=OneLakeConfig.model_validate(self.onelake.model_dump()))


class SourceTable(DeltaTableResource):  # type: ignore[misc]  # it has no types
    """dagster-deltalake's resource of a table; its options are those of the table's store, fetched when it opens."""

    _access: Access = PrivateAttr()

    @classmethod
    def of(cls, access: Access) -> SourceTable:
        """Return the resource of the table at the end of this way."""
        table: SourceTable = cls(url=access.uri, storage_options=LocalConfig())
        table._access = access
        return table

    def load(self) -> DeltaTable:
        """Open the table. Raises deltalake's errors."""
        return load_table(self._access)


class SourceTables(dg.ConfigurableResource[None]):
    """The source tables by their name in the mirror.

    .. code-block:: python

        SourceTables.of({"sales.orders": "/lake/orders"}).log(TableName.parse("sales.orders")).state().version
    """

    _uris: ClassVar[Mapping[str, str]] = {}
    _access: ClassVar[Callable[[str], Access]] = PlainAccess
    _locate: ClassVar[Callable[[str, Session | None], Locate | None]] = lambda *_: None

    @classmethod
    def of(
        cls,
        uris: Mapping[str, str],
        access: Callable[[str], Access] = PlainAccess,
        locate: Callable[[str, Session | None], Locate | None] = lambda *_: None,
    ) -> SourceTables:
        """Return the resource of these sources: a path or address by each table's name in the mirror.

        `access` finds the way to an address, `locate` what asks the catalog of a table that has no address. They are
        kept in a class of its own: Dagster writes a resource's fields into the snapshot of every job, which with
        hundreds of tables, each with a job, would be a hundred megabytes of addresses.
        """

        class ConfiguredSources(cls):  # type: ignore[misc, valid-type]
            _uris: ClassVar[Mapping[str, str]] = dict(uris)
            _access: ClassVar[Callable[[str], Access]] = staticmethod(access)
            _locate: ClassVar[Callable[[str, Session | None], Locate | None]] = staticmethod(locate)

        ConfiguredSources.__name__, ConfiguredSources.__doc__ = cls.__name__, cls.__doc__
        resource: SourceTables = ConfiguredSources()
        return resource

    def load(self, table: TableName) -> DeltaTable:
        """Return the table at its newest version, opened by dagster-deltalake, for assets of one's own.

        Dagster takes longer to make such a resource than deltalake to open a table: `log` opens it without one.
        """
        opened: DeltaTable = SourceTable.of(self.access(table)).load()
        return opened

    def log(self, table: TableName, session: Session | None = None) -> DeltaLog:
        """Return the table's log; `session` is Spark, to ask its catalogs."""
        locate = type(self)._locate(str(table), session)  # noqa: SLF001 its own
        if locate is not None:
            return DeltaLog(self._uris[str(table)], locate=locate)
        return DeltaLog(self._uris[str(table)], self.access(table))

    def access(self, table: TableName) -> Access:
        """Return the way to the table."""
        return type(self)._access(self._uris[str(table)])  # noqa: SLF001 its own


class SparkSessions(LazyPySparkResource):  # type: ignore[misc]  # it has no types
    """Sessions on one Spark context, which outlives the run, so the next run in the process starts warm.

    Dagster stores a resource's values and shows them: secrets are references to environment variables, which a session
    resolves when it opens.

    .. code-block:: python

        SparkSessions(spark_config={"spark.hadoop.fs.s3a.secret.key": "${S3_SECRET}"}).open().range(1).count()
    """

    spark_config: dict[str, str] = Field(
        default_factory=dict, description="Settings beside this project's own; ${NAME} is an environment variable."
    )
    reach: dict[str, str] = Field(
        default_factory=dict, description="How Spark reaches stores; ${env.NAME} is Hadoop's reference."
    )
    packages: list[str] = Field(default_factory=list, description="Maven coordinates of the JARs for them.")
    jars_folder: str | None = Field(default=None, description="Folder with the JARs of all packages.")

    # In the class, not a field: it asks catalogs.
    _of_catalogs: ClassVar[Callable[[], Sequence[str]]] = tuple

    @classmethod
    def of(cls, config: Config) -> SparkSessions:
        """Return the sessions of this configuration."""
        settings = SparkSettings.of(config)

        class ConfiguredSessions(cls):  # type: ignore[misc, valid-type]
            _of_catalogs: ClassVar[Callable[[], Sequence[str]]] = staticmethod(settings.of_catalogs)

        ConfiguredSessions.__name__, ConfiguredSessions.__doc__ = cls.__name__, cls.__doc__
        found: SparkSessions = ConfiguredSessions(
            spark_config=dict(settings.written),
            reach=dict(settings.reach),
            packages=list(settings.packages),
            jars_folder=None if settings.jars_folder is None else str(settings.jars_folder),
        )
        return found

    def open(self, owner: str | None = None) -> SparkSession:
        """Return the owner's session, or a new one. Raises variable_unset, package_refused and SparkNotStarted."""
        folder = None if self.jars_folder is None else Path(self.jars_folder)
        of_catalogs = type(self)._of_catalogs  # noqa: SLF001 its own
        return SparkSettings(self.reach, self.spark_config, self.packages, folder, of_catalogs).open(owner)

    @property
    def spark_session(self) -> SparkSession:
        """Return one session for all who ask for it; no table's pipeline uses it."""
        return self.open("the resource")

    @property
    def spark_context(self) -> SparkContext:
        """Return the context of all sessions."""
        return self.spark_session.sparkContext


Resource: TypeAlias = ConfigurableResource[None] | SparkSessions | ResourceDefinition


def spark_resource(config: Config) -> SparkSessions:
    """Return the sessions of this configuration."""
    return SparkSessions.of(config)


def resources(config: Config) -> dict[str, Resource]:
    """The resources by the names that assets and checks ask for.

    Outputs of steps stay in memory: Dagster's default IO manager would pickle them into storage.
    """
    place = config.landing_zone
    zone = LandingZone(
        path=None if place.path is None else str(place.path),
        onelake=None if place.onelake is None else OneLake(**place.onelake.model_dump(mode="json")),
    )
    sources = known_sources(config)
    return {"io_manager": mem_io_manager, "landing_zone": zone, "sources": sources, "spark": spark_resource(config)}


def known_sources(config: Config) -> SourceTables:
    """Return the sources of this configuration's tables."""
    uris = {str(table.name): table.source for table in config.all_tables()}
    return SourceTables.of(uris, config.access, lambda name, session: locator(config, config.table(name), session))


def project(
    config: Config,
    zone: LandingZone,
    sources: SourceTables,
    spark: SparkSessions | None = None,
    report: Callable[[str], None] = lambda _: None,
    *,
    lands: bool = True,
) -> Project:
    """Compose the project of a step from its resources; without `spark`, nothing in it can start Spark.

    `report` takes a line for the log when Spark starts, which takes a while, and when it has started. A step that
    `lands` nothing leaves a landing zone that is empty as it is.
    """
    if spark is None:
        return Project(config, zone.open(), zone.local_staging(), sources.log, no_spark)
    session, store = reporting_start(spark.open, report), zone.store() if lands else zone.open()
    return Project(config, store, zone.local_staging(), partial(sources.log, session=session), session)


def mirror_of(config: Config, zone: LandingZone) -> Mirror:
    """Return the mirror of this landing zone: the database in Fabric, or the local stand-in's tables."""
    return open_mirror(config, zone.store())
