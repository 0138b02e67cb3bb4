"""The composition root: builds the objects of a configuration, for Dagster's resources, the command line and tests.

Nothing is read, requested or started before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError, SettingError
from mirror_assets.lakes.catalogs import last_address
from mirror_assets.lakes.errors import STORES_COLLIDE
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.spark_sessions import Session, SparkSettings, no_spark, reporting_start, session_from
from mirror_assets.zones import Store
from mirror_assets.zones.unreachable import UnreachableStore

if TYPE_CHECKING:
    # Loaded when something opens that needs them: commands that read logs do without.
    from pyspark.sql import SparkSession


def compose(
    config: Config,
    session: Session | None = None,
    report: Callable[[str], None] = lambda _: None,
    *,
    needs_zone: bool = True,
) -> Project:
    """Build the project of a configuration; `session` replaces Spark's; `report` takes a line when Spark starts.

    A session that `session` returns is never changed: its owner gets one that is made from it. Raises what
    `Zone.open` raises; unless `needs_zone`, each request to the landing zone does, and is repeated for less time.
    """
    settings = cache(partial(spark_settings_of, config))  # of every source's store: only Spark needs them
    if session is None:
        opened = reporting_start(lambda owner: settings().open(owner), report)
    else:
        opened = session if session is no_spark else partial(session_from, session)
    return Project(config, _open_zone(config, needs_zone=needs_zone), config.zone.local_staging(), opened)


def _open_zone(config: Config, *, needs_zone: bool) -> Store:
    try:
        if config.unset.zone_error is not None:
            raise config.unset.zone_error
        return config.zone.open(is_brief=not needs_zone)
    except SettingError as error:
        if needs_zone:
            raise
        return cast("Store", UnreachableStore(config.zone.root, error))


def spark_settings_of(config: Config) -> SparkSettings:
    """Return the settings of Spark, with those of the stores that it has to reach. Raises STORES_COLLIDE.

    They are the stores of the sources, and the landing zone; where Spark doesn't write to that, a feature's mirror.
    """
    place, stores = config.mirror_place, config.lake_stores()
    own = config.zone.spark_reach or (place.spark_reach if place else None)
    reach = dict(own.settings) if own else {}
    for store in stores:
        for name, value in store.hadoop_settings().items():
            if reach.setdefault(name, value) != value:
                raise STORES_COLLIDE(root=store.root.uri, setting=name)
    hadoop = {f"spark.hadoop.{name}": value for name, value in reach.items()}
    packages = [*(package for store in stores for package in store.packages), *(own.packages if own else ())]
    distinct, of_catalogs = tuple(dict.fromkeys(packages)), packages_of_catalogs(config)
    return SparkSettings(hadoop, config.spark.all_settings, distinct, config.spark.jars_folder, of_catalogs)


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
    """Return the owner's session, or a new one. Raises VARIABLE_UNSET and SPARK_NOT_STARTED.

    `is_brief`: see `SparkSettings.open`.
    """
    return spark_settings_of(config).open(owner, is_brief=is_brief)
