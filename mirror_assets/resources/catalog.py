"""All resources of a configuration, and the work that an asset does with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NoReturn

from dagster import ConfigurableResource, ResourceDefinition, mem_io_manager
from pyspark.sql import SparkSession

from mirror_assets.config import Config, History, TableSettings
from mirror_assets.fabric.monitoring import Mirror
from mirror_assets.history.context import HistoryContext, StreamOptions
from mirror_assets.history.log import HistoryLog
from mirror_assets.mirroring.changes import limits_of
from mirror_assets.mirroring.mirrors import open_mirror
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.landing_zone import LandingZone, OneLake
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions, spark_resource


def resources(config: Config) -> dict[str, ConfigurableResource[None] | SparkSessions | ResourceDefinition]:
    """The resources by the names that assets and checks ask for.

    What steps hand on stays in memory: Dagster's default would pickle it into storage and unpickle it from there.
    """
    place = config.landing_zone
    zone = LandingZone(
        path=None if place.path is None else str(place.path),
        onelake=None if place.onelake is None else OneLake(**place.onelake.model_dump(mode="json")),
        partner=config.partner.name,
        source_type=config.partner.source_type,
        source_version=config.partner.source_version,
    )
    sources = SourceTables(uris={str(table.name): table.source for table in config.all_tables()})
    return {"io_manager": mem_io_manager, "landing_zone": zone, "sources": sources, "spark": spark_resource(config)}


def table_work(
    config: Config, table: TableSettings, zone: LandingZone, sources: SourceTables, spark: SparkSessions
) -> TableWork:
    """The table's work on this landing zone, with the table's own session, which opens when it is needed."""
    log, store = sources.log(table.name), zone.store()
    return TableWork(config, table, log, store, cache(partial(spark.open, str(table.name))), zone.exchange())


def planning_work(config: Config, table: TableSettings, zone: LandingZone, sources: SourceTables) -> TableWork:
    """The same for what only looks at log and manifest; it never starts Spark."""
    return TableWork(config, table, sources.log(table.name), zone.open(), _no_spark, zone.exchange())


def history_work(config: Config, table: TableSettings, sources: SourceTables, spark: SparkSessions) -> HistoryContext:
    """What keeping the table's history needs, with a session of its own that opens when needed; no landing zone."""
    return _history_work(config, table, sources, cache(partial(spark.open, f"history of {table.name}")))


def planning_history(config: Config, table: TableSettings, sources: SourceTables) -> HistoryContext:
    """The same for what only looks at the logs; it never starts Spark."""
    return _history_work(config, table, sources, _no_spark)


def _history_work(
    config: Config, table: TableSettings, sources: SourceTables, spark: Callable[[], SparkSession]
) -> HistoryContext:
    name = table.name
    folder = config.history.path / "_checkpoints" / name.folder
    stream = StreamOptions(folder, **table.history_stream.model_dump()) if table.history is History.STREAM else None
    history = HistoryLog(str(name), config.history_folder(name))
    return HistoryContext(str(name), sources.log(name), history, limits_of(table), spark, stream)


def mirror_of(config: Config, zone: LandingZone) -> Mirror:
    """The mirror of this landing zone: Fabric's, or the local stand-in's."""
    return open_mirror(config, zone.store())


def _no_spark() -> NoReturn:
    raise RuntimeError("planning starts no Spark")
