"""`landing_zone/...`: the table folder that Fabric reads; staged parts get their numbers here."""

from collections.abc import Iterator, Sequence

import dagster as dg

from mirror_assets.assets.metadata import landed_metadata
from mirror_assets.assets.names import Kind, asset_key, group_name, pool_name, slices_of
from mirror_assets.assets.slices import Metadata, materialize_slices, slice_keys
from mirror_assets.config import Config, TableSettings
from mirror_assets.landing.names import SliceKey
from mirror_assets.mirroring.land import land_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions


def landing_zone_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """The asset that publishes staged slices whose blocking checks have passed."""
    key = asset_key(Kind.LANDING_ZONE, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.CHANGE_FEED, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds={"parquet"},
        description="Landing files of the table, numbered without a gap, each change exactly once and in order.",
    )
    def landing_zone_folder(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        work = table_work(config, table, landing_zone, sources, spark)
        return materialize_slices(context, key, work, keys, _land(work, keys))

    return landing_zone_folder


def _land(work: TableWork, keys: Sequence[SliceKey]) -> Iterator[Metadata]:
    for key in keys:
        yield landed_metadata(work, land_slice(work, key))
