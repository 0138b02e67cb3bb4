"""`change_feed/...`: slices of the source's changes, encoded and staged, not visible to Fabric yet."""

from collections.abc import Iterator, Sequence

import dagster as dg

from mirror_assets.assets.metadata import skipped_metadata, staged_metadata
from mirror_assets.assets.names import Kind, asset_key, group_name, pool_name, slices_of
from mirror_assets.assets.slices import Metadata, materialize_slices, slice_keys
from mirror_assets.config import Config, TableSettings
from mirror_assets.landing.names import SliceKey
from mirror_assets.mirroring.queue import stage_keys
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions


def change_feed_asset(config: Config, table: TableSettings) -> dg.AssetsDefinition:
    """The asset that stages slices: all slices of a run in one step, in order."""
    key = asset_key(Kind.CHANGE_FEED, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.SOURCE, table.name)],
        partitions_def=slices_of(table.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=pool_name(table.name),
        group_name=group_name(table.name),
        kinds={"pyspark", "parquet"},
        description="Changes of the source as ordered, marked Parquet parts, staged where Fabric does not look.",
    )
    def change_feed(
        context: dg.AssetExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        keys = slice_keys(context)
        work = table_work(config, table, landing_zone, sources, spark)
        return materialize_slices(context, key, work, keys, _stage(work, keys))

    return change_feed


def _stage(work: TableWork, keys: Sequence[SliceKey]) -> Iterator[Metadata]:
    for record in stage_keys(work, keys):
        yield staged_metadata(work, record) if record else skipped_metadata("landed before, or of an earlier life")
