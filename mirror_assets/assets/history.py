"""`history/...`: the change feed of the source, kept for ever; nothing waits for it, and it waits for no landing."""

from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from mirror_assets.assets.items import MetadataItem
from mirror_assets.assets.names import Kind, asset_key, group_name, history_pool
from mirror_assets.assets.slices import failure
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.history.context import HistoryContext
from mirror_assets.history.keep import keep_history
from mirror_assets.history.log import HistoryCommit
from mirror_assets.resources.catalog import history_work
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions


class KeepHistory(dg.Config):
    """Where a history goes on though commits before it are not kept, and never will be."""

    skip_to: int | None = Field(default=None, ge=0)


def history_asset(settings: Config, table: TableSettings) -> dg.AssetsDefinition:
    """The asset that keeps the feed up to the source's newest commit; it has no partitions, its log has the slices."""
    key = asset_key(Kind.HISTORY, table.name)

    @dg.asset(
        key=key,
        deps=[asset_key(Kind.SOURCE, table.name)],
        pool=history_pool(table.name),
        group_name=group_name(table.name),
        kinds={"pyspark", "deltalake"},
        description="Every row of the source's change data feed, with its commit, in an append-only Delta table.",
    )
    def history(
        context: dg.AssetExecutionContext, config: KeepHistory, sources: SourceTables, spark: SparkSessions
    ) -> dg.MaterializeResult[None]:
        work = history_work(settings, table, sources, spark)
        kept: list[HistoryCommit] = []
        try:
            for slice_ in keep_history(work, context.log.info, config.skip_to):
                kept.append(slice_)  # noqa: PERF402 what comes before an error is to be told
            return dg.MaterializeResult(asset_key=key, metadata=_metadata(work, kept))
        except MirrorError as error:
            if kept:
                context.log_event(dg.AssetMaterialization(key, metadata=_metadata(work, kept)))
            raise failure(error) from error

    return history


def _metadata(work: HistoryContext, kept: Sequence[HistoryCommit]) -> dict[str, MetadataItem]:
    """What a run has kept, and up to where the history goes now."""
    newest = kept[-1] if kept else work.history.newest()
    metadata: dict[str, MetadataItem] = {
        "slices": len(kept),
        "rows": sum(slice_.rows for slice_ in kept),
        "table": dg.MetadataValue.path(work.history.uri),
    }
    if kept:
        metadata |= {"first_version": kept[0].first, "last_version": kept[-1].last}
    if newest is not None:
        metadata |= {"covered_version": newest.last, "generation": newest.generation, "table_id": newest.table_id}
    return metadata
