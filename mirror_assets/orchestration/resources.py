"""Dagster's resources: the landing zone, Spark sessions, tables as inputs; each wraps Dagster-free code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import dagster as dg
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaProtocolError
from pydantic import Field
from pyspark import SparkContext
from pyspark.sql import SparkSession

from mirror_assets.composition import packages_of_catalogs, spark_settings_of
from mirror_assets.config.errors import TABLES_UNCONFIRMED
from mirror_assets.config.model import Config
from mirror_assets.feature import assets_of_features
from mirror_assets.lakes.access import Access
from mirror_assets.landing.metadata import ensure_partner_events
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.dagster_internals import TableSlice
from mirror_assets.orchestration.errors import INPUT_UNSUPPORTED, NOT_MIRRORED_YET
from mirror_assets.orchestration.mirror_assets import LANDING_ZONE, OUTPUTS, SPARK, TABLES, MirrorAssets
from mirror_assets.orchestration.runs import failing
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.project import Project, open_mirror, source_log
from mirror_assets.pipeline.spark_sessions import Session, SparkSettings, no_spark, reporting_start
from mirror_assets.source.delta_rs import load_table
from mirror_assets.source.errors import SOURCE_UNSUPPORTED
from mirror_assets.zones import Store
from mirror_assets.zones.landing_zone import LandingZoneConfig, Zone

if TYPE_CHECKING:
    from dagster_deltalake.handler import DeltalakeBaseArrowTypeHandler

# dagster-deltalake and dagster-pyspark, the extra `io`, require one release of Dagster exactly: all but inputs works
# without them.
try:
    from dagster_pyspark import LazyPySparkResource
except ImportError:
    LazyPySparkResource = dg.ConfigurableResource

# `partnerName` in _partnerEvents.json. Fabric requires that it never changes.
_PARTNER = "mirror_assets"
# The types of inputs, each with the module of its handler and what to install for it.
_ARROW = ("dagster_deltalake.handler", "DeltaLakePyArrowTypeHandler", "'mirror-assets[io]'")
_PANDAS = ("dagster_deltalake_pandas", "DeltaLakePandasTypeHandler", "dagster-deltalake-pandas")
_POLARS = ("dagster_deltalake_polars", "DeltaLakePolarsTypeHandler", "dagster-deltalake-polars")
_HANDLERS = {
    "pandas.DataFrame": _PANDAS,
    "polars.DataFrame": _POLARS,
    "polars.LazyFrame": _POLARS,
    "pyarrow.Dataset": _ARROW,
    "pyarrow.RecordBatchReader": _ARROW,
    "pyarrow.Table": _ARROW,
}


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
        settings = spark_settings_of(config)
        return cls(
            spark_config=dict(settings.written),
            reach=dict(settings.reach),
            packages=list(settings.packages),
            jars_folder=None if settings.jars_folder is None else str(settings.jars_folder),
        )

    def settings(self, of_catalogs: Callable[[], Sequence[str]] = tuple) -> SparkSettings:
        """Return the settings of all sessions; `of_catalogs` returns the JARs that tables of catalogs need."""
        folder = None if self.jars_folder is None else Path(self.jars_folder)
        return SparkSettings(self.reach, self.spark_config, self.packages, folder, of_catalogs)

    @property
    def spark_session(self) -> SparkSession:
        """Return one session for all who ask for it; no table's pipeline uses it."""
        return self.settings().open("the resource")

    @property
    def spark_context(self) -> SparkContext:
        """Return the context of all sessions."""
        return self.spark_session.sparkContext


class TableInputs(dg.IOManager):
    """Loads the Delta table of an asset as the type of the input, through dagster-deltalake's type handlers.

    .. code-block:: python

        @dg.asset(ins={"orders": dg.AssetIn(["shop", "orders_mirror"])})
        def revenue(orders: pa.Table) -> float: ...
    """

    def __init__(self, assets: MirrorAssets) -> None:
        """Load assets of this mirror; nothing is opened yet."""
        self._assets = assets

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:  # noqa: ARG002
        """Refuse: sources, mirrors and the tables of features are written by others. Raises dagster.Failure."""
        raise dg.Failure(
            f"{context.asset_key.to_user_string()} can't be stored: this IO manager only loads tables of a mirror. Use "
            "another one for your asset."
        )

    def load_input(self, context: dg.InputContext) -> object:
        """Return the table at its newest version; the input's metadata `columns` selects columns."""
        wanted = context.dagster_type.typing_type
        with failing():
            kind, table = self._known[context.asset_key]
            access, handler = self._access(kind, table), _handler(wanted)
            columns = (context.definition_metadata or {}).get("columns")
            place = TableSlice(table.table, table.schema or "", columns=columns)
            connection = import_module("dagster_deltalake.io_manager").TableConnection(
                access.uri, dict(access.storage_options()), None
            )
            try:
                return handler.load_input(context, place, connection)
            except DeltaProtocolError:
                # Arrow's reader knows no deletion vectors and no column mapping; DataFusion's does.
                rows = ds.dataset(_query(load_table(access), columns))
        if wanted is ds.Dataset:
            return rows
        is_lazy = wanted.__name__ == "LazyFrame"
        return handler.from_arrow(rows if is_lazy else rows.scanner().to_reader(), wanted)

    @cached_property
    def _known(self) -> dict[dg.AssetKey, tuple[AssetKind, TableName]]:
        assets, tables = self._assets, self._assets.config.all_tables()
        return {
            assets.key(kind, table.name): (kind, table.name)
            for table in tables
            for kind in assets.kinds(table)
            if kind.is_delta_table
        }

    def _access(self, kind: AssetKind, table: TableName) -> Access:
        config = self._assets.config
        config.require_variables()
        if kind == AssetKind.SOURCE:
            log = source_log(config, config.table(table))
            if log.is_managed:
                step = "load the asset of its mirror, or read the table by its catalog."
                raise SOURCE_UNSUPPORTED(uri=log.uri, why="commits that only its catalog has", next_step=step)
            return log.access
        made = assets_of_features(config, config.table(table)).get(kind.value)
        if made is not None:
            return config.access(made.uri)
        status = open_mirror(config, config.zone.open()).table(table)
        if status is None:
            raise NOT_MIRRORED_YET(table=table)
        return config.access(status.location)


def _query(table: DeltaTable, columns: Sequence[str] | None) -> pa.Table:
    """Return these columns of the table, or all, with the types that Arrow's reader gives them."""
    schema = pa.schema(table.schema().to_arrow())
    names = list(columns or schema.names)
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    query = f"SELECT {listed} FROM rows"  # noqa: S608 names are quoted, and of the table's schema
    rows = pa.table(QueryBuilder().register("rows", table).execute(query).read_all())
    return rows.cast(pa.schema([schema.field(name) for name in names]))


def _handler(wanted: type) -> DeltalakeBaseArrowTypeHandler[object]:
    """Return dagster-deltalake's handler of the type. Raises SettingError for other types, and without its package."""
    name = f"{wanted.__module__.partition('.')[0]}.{getattr(wanted, '__name__', wanted)}"
    if name not in _HANDLERS:
        raise INPUT_UNSUPPORTED(name=name, why="")
    module, handler, package = _HANDLERS[name]
    try:
        found: DeltalakeBaseArrowTypeHandler[object] = getattr(import_module(module), handler)()
    except ImportError as error:
        why = f": {error.name} is not installed"
        raise INPUT_UNSUPPORTED(name=name, why=why, next_step=f"pip install {package}") from error
    return found


class SparkResource(Protocol):
    """A PySpark resource of the project, such as dagster-pyspark's."""

    @property
    def spark_session(self) -> SparkSession:
        """The session that it has started."""


Resource: TypeAlias = LandingZone | SparkSessions | dg.ResourceDefinition


def resources(assets: MirrorAssets) -> dict[str, Resource]:
    """Return the resources of the mirror by their full names; the project's own PySpark resource replaces `spark`."""

    # One that Dagster makes of a value is shown as `<lambda>`.
    @dg.io_manager(description="Loads sources, mirrors and the tables of features as inputs of other assets.")
    def table_inputs(_: dg.InitResourceContext) -> TableInputs:
        return TableInputs(assets)

    zone = LandingZone(settings=assets.config.landing_zone.model_dump(mode="json", exclude_none=True))
    found: dict[str, Resource] = {
        assets.full_name(LANDING_ZONE): zone,
        assets.full_name(OUTPUTS): dg.mem_io_manager,
        assets.full_name(TABLES): table_inputs,
    }
    return found if assets.spark else {**found, assets.full_name(SPARK): SparkSessions.of(assets.config)}


def resource_keys(assets: MirrorAssets, *, with_spark: bool = True) -> set[str]:
    """Return the keys of the resources that `project` takes."""
    return {assets.full_name(LANDING_ZONE)} | ({assets.spark or assets.full_name(SPARK)} if with_spark else set())


def fixed_config(assets: MirrorAssets) -> dict[str, Any]:
    """Return a job's resources, executor and logger, with their configuration fixed.

    Otherwise each launchpad would begin with the configuration of every resource, and Dagster's daemon would read its
    schema each minute: half of the definition of a table's job.

    With a PySpark resource of the project, all resources are those of the project's definitions: Dagster takes all or
    none from a job.
    """
    found = (
        {}
        if assets.spark
        else {
            name: one if isinstance(one, dg.ResourceDefinition) else dg.ResourceDefinition.hardcoded_resource(one)
            for name, one in resources(assets).items()
        }
    )
    return {
        "resource_defs": found,
        "executor_def": dg.in_process_executor.configured({}),
        "logger_defs": {"console": dg.colored_console_logger.configured({})},
    }


def zone_of(assets: MirrorAssets, opened: dg.Resources) -> LandingZone:
    """Return the mirror's landing zone among the resources of a step or tick. Raises MISTAKES for unset variables."""
    assets.config.require_variables()
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
    while discovery's memory could not be read, and what `SparkSettings.require_machine` raises.
    """
    if lands and with_spark:
        spark = getattr(opened, assets.spark or assets.full_name(SPARK))
        if isinstance(spark, SparkSessions):
            spark.settings().require_machine()
        if not assets.config.discovered.is_confirmed:
            raise TABLES_UNCONFIRMED()
    zone = zone_of(assets, opened)
    store = zone.store() if with_spark and lands else zone.open()
    session = reporting_start(sessions(assets, opened), report) if with_spark else no_spark
    return Project(assets.config, store, zone.zone.local_staging(), session)


def sessions(assets: MirrorAssets, opened: dg.Resources) -> Session:
    """Return the function that opens Spark sessions, on the project's own PySpark resource if it names one.

    Raises MISTAKES for unset variables.
    """
    assets.config.require_variables()
    found: SparkSessions | SparkResource = getattr(opened, assets.spark or assets.full_name(SPARK))
    if isinstance(found, SparkSessions):
        return found.settings(packages_of_catalogs(assets.config)).open
    settings = spark_settings_of(assets.config)

    def session(owner: str | None) -> SparkSession:
        _ = found.spark_session  # it starts the context that the sessions share
        return settings.open(owner)

    return session
