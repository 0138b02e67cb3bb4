"""Dagster's resources: the landing zone, Spark sessions, tables as inputs; each wraps Dagster-free code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg
from dagster_pyspark import LazyPySparkResource, PySparkResource
from pydantic import Field
from pyspark import SparkContext
from pyspark.sql import SparkSession

from mirror_assets.composition import (
    Project,
    Session,
    SparkSettings,
    no_spark,
    packages_of_catalogs,
    reporting_start,
)
from mirror_assets.config.errors import TABLES_UNCONFIRMED
from mirror_assets.config.model import Config
from mirror_assets.encode.session import require_delta
from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.orchestration.asset_names import LANDING_ZONE, OUTPUTS, SPARK, TABLES
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.table_inputs import TableInputs
from mirror_assets.zones import Store
from mirror_assets.zones.landing_zone import LandingZoneConfig
from mirror_assets.zones.store import Zone

# `partnerName` in _partnerEvents.json. Fabric requires that it never changes.
_PARTNER = "mirror_assets"


class LandingZone(dg.ConfigurableResource[None]):
    """Where landing files go. Dagster stores and shows the settings, of which none is a secret."""

    settings: dict[str, Any] = Field(description="`landing_zone` of mirror.yaml (docs/configuration.md).")

    @property
    def zone(self) -> Zone:
        """The landing zone."""
        return LandingZoneConfig.model_validate(self.settings).zone

    def open(self) -> Store:
        """Return the landing zone's store; it makes no request yet."""
        return self.zone.open()

    def store(self) -> Store:
        """Return the store with its partner file in place, for publishers."""
        store = self.open()
        ensure_partner_events(store, _PARTNER, {"sourceType": "Delta Lake", "sourceVersion": ""})
        return store


class SparkSessions(LazyPySparkResource):  # type: ignore[misc]  # it has no types
    """Sessions on one Spark context, which outlives the run, so the next run in the process starts warm.

    Dagster stores a resource's values and shows them: secrets are references to environment variables, which a session
    resolves when it opens, such as `spark.hadoop.fs.s3a.secret.key: ${S3_SECRET}`.
    """

    spark_config: dict[str, str] = Field(
        default_factory=dict, description="Settings beside this project's own; ${NAME} is an environment variable."
    )
    reach: dict[str, str] = Field(
        default_factory=dict, description="How Spark reaches stores; ${env.NAME} is Hadoop's reference."
    )
    packages: list[str] = Field(default_factory=list, description="Maven coordinates of the JARs for them.")
    jars_folder: str | None = Field(default=None, description="Folder with the JARs of all packages.")

    @classmethod
    def of(cls, config: Config) -> SparkSessions:
        """Return the sessions of this configuration."""
        settings = SparkSettings.of(config)
        return cls(
            spark_config=dict(settings.written),
            reach=dict(settings.reach),
            packages=list(settings.packages),
            jars_folder=None if settings.jars_folder is None else str(settings.jars_folder),
        )

    def open(self, owner: str | None = None, of_catalogs: Callable[[], Sequence[str]] = tuple) -> SparkSession:
        """Return the owner's session, or a new one; `of_catalogs` returns the JARs that tables of catalogs need.

        Raises variable_unset, package_refused and SparkNotStarted.
        """
        folder = None if self.jars_folder is None else Path(self.jars_folder)
        return SparkSettings(self.reach, self.spark_config, self.packages, folder, of_catalogs).open(owner)

    @property
    def spark_session(self) -> SparkSession:
        """Return one session for all who ask for it; no table's pipeline uses it."""
        return self.open("the resource")

    @property
    def spark_context(self) -> SparkContext:
        """Return the context of all sessions."""
        return self.spark_session.sparkContext


Resource: TypeAlias = LandingZone | SparkSessions | dg.ResourceDefinition


def resources(assets: MirrorAssets) -> dict[str, Resource]:
    """Return the resources of the mirror by their full names; the project's own PySpark resource replaces `spark`."""
    zone = LandingZone(settings=assets.config.landing_zone.model_dump(mode="json", exclude_none=True))
    found: dict[str, Resource] = {
        assets.full_name(LANDING_ZONE): zone,
        assets.full_name(OUTPUTS): dg.mem_io_manager,
        assets.full_name(TABLES): _table_inputs(assets),
    }
    return found if assets.spark else {**found, assets.full_name(SPARK): SparkSessions.of(assets.config)}


def _table_inputs(assets: MirrorAssets) -> dg.IOManagerDefinition:
    """Return the resource with a name: of one that Dagster makes of a value, its pages show `<lambda>`."""

    @dg.io_manager(description="Loads sources, mirrors and histories as inputs of other assets.")
    def table_inputs(_: dg.InitResourceContext) -> TableInputs:
        return TableInputs(assets)

    return table_inputs


def resource_keys(assets: MirrorAssets, *, with_spark: bool = True) -> set[str]:
    """Return the keys of the resources that `project` takes."""
    return {assets.full_name(LANDING_ZONE)} | ({assets.spark or assets.full_name(SPARK)} if with_spark else set())


def zone_of(assets: MirrorAssets, opened: dg.Resources) -> LandingZone:
    """Return the mirror's landing zone among the resources of a step or tick."""
    zone: LandingZone = getattr(opened, assets.full_name(LANDING_ZONE))
    return zone


def project(
    assets: MirrorAssets,
    opened: dg.Resources,
    report: Callable[[str], None] = lambda _: None,
    *,
    with_spark: bool = True,
    lands: bool = True,
) -> Project:
    """Compose the project of a step from its resources; without Spark, nothing in it can start Spark.

    `report` takes a line for the log when Spark starts, which takes a while, and when it has started. A step that
    `lands` nothing leaves an empty landing zone empty. Raises RetryError for one that lands, if tables were discovered
    while discovery's memory could not be read.
    """
    if lands and with_spark and not assets.config.discovered.is_confirmed:
        raise TABLES_UNCONFIRMED()
    zone = zone_of(assets, opened)
    store = zone.store() if with_spark and lands else zone.open()
    session = reporting_start(sessions(assets, opened), report) if with_spark else no_spark
    return Project(assets.config, store, zone.zone.local_staging(), session)


def sessions(assets: MirrorAssets, opened: dg.Resources) -> Session:
    """Return the function that opens Spark sessions, on the project's own PySpark resource if it names one."""
    found: SparkSessions | PySparkResource | LazyPySparkResource
    found = getattr(opened, assets.spark or assets.full_name(SPARK))
    if isinstance(found, SparkSessions):
        return partial(found.open, of_catalogs=packages_of_catalogs(assets.config))
    settings = SparkSettings.of(assets.config)

    def session(owner: str | None) -> SparkSession:
        require_delta(found.spark_session)
        return settings.open(owner)  # on the context that the resource has started

    return session
