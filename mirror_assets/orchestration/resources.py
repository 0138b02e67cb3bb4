"""Dagster's resources: the landing zone, the source tables, Spark sessions; each wraps Dagster-free code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    SparkSettings,
    no_spark,
    open_local_staging,
    open_mirror,
    open_zone,
    reporting_start,
    source_log,
)
from mirror_assets.config import Config, LandingZoneConfig, OneLakeConfig
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.landing.names import TableName
from mirror_assets.source.access import Access
from mirror_assets.source.delta_rs import load_table
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
    """dagster-deltalake's resource of a table, opened with the options of the table's store."""

    _access: Access = PrivateAttr()

    def load(self) -> DeltaTable:
        """Open the table. Raises deltalake's errors."""
        return load_table(self._access)


@dataclass(frozen=True)
class SourceTables:
    """The source tables, for your own assets.

    .. code-block:: python

        @dg.asset
        def total(sources: dg.ResourceParam[SourceTables]) -> int:
            return sources.load(TableName.parse("sales.orders")).to_pyarrow_table().num_rows
    """

    config: Config

    def load(self, table: TableName) -> DeltaTable:
        """Return the table, by its name in the mirror, at its newest version. Raises deltalake's errors."""
        access = source_log(self.config, self.config.table(str(table))).access
        resource = SourceTable(url=access.uri, storage_options=LocalConfig())
        resource._access = access  # noqa: SLF001 its own
        opened: DeltaTable = resource.load()
        return opened


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


Resource: TypeAlias = ConfigurableResource[None] | SparkSessions | SourceTables | ResourceDefinition


def resources(config: Config) -> dict[str, Resource]:
    """The resources by the names that assets and checks ask for.

    Outputs of steps stay in memory: Dagster's default IO manager would pickle them into storage.
    """
    place = config.landing_zone
    zone = LandingZone(
        path=None if place.path is None else str(place.path),
        onelake=None if place.onelake is None else OneLake(**place.onelake.model_dump(mode="json")),
    )
    spark, sources = SparkSessions.of(config), SourceTables(config)
    return {"io_manager": mem_io_manager, "landing_zone": zone, "sources": sources, "spark": spark}


def project(
    config: Config,
    zone: LandingZone,
    spark: SparkSessions | None = None,
    report: Callable[[str], None] = lambda _: None,
    *,
    lands: bool = True,
) -> Project:
    """Compose the project of a step from its resources; without `spark`, nothing in it can start Spark.

    `report` takes a line for the log when Spark starts, which takes a while, and when it has started. A step that
    `lands` nothing leaves an empty landing zone empty.
    """
    if spark is None:
        return Project(config, zone.open(), zone.local_staging(), no_spark)
    store = zone.store() if lands else zone.open()
    return Project(config, store, zone.local_staging(), reporting_start(spark.open, report))


def mirror_of(config: Config, zone: LandingZone) -> Mirror:
    """Return the mirror of this landing zone: the database in Fabric, or the local stand-in's tables."""
    return open_mirror(config, zone.store())
