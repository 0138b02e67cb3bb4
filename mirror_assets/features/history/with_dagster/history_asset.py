"""The asset that appends the feed to a table's history, and the job of all of them."""

from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.features.history import HISTORY
from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext
from mirror_assets.features.history.with_dagster.opening import open_history
from mirror_assets.features.history.with_spark.keep import keep_history
from mirror_assets.orchestration.dagster_internals import Job
from mirror_assets.orchestration.mirror_assets import MirrorAssets, step_name
from mirror_assets.orchestration.resources import resource_keys, sessions
from mirror_assets.orchestration.runs import failure
from mirror_assets.orchestration.translator import AssetKind, MetadataItem, shown_place
from mirror_assets.pipeline.project import source_log
from mirror_assets.telemetry.progress import end_work


class KeepHistory(dg.Config):
    """The version to continue a history from, when the commits before it can't be kept any more."""

    skip_to: int | None = Field(default=None, ge=0)


def history_asset(assets: MirrorAssets, table: TableSettings) -> dg.AssetsDefinition:
    """Return the asset that appends the feed to the history table."""
    spec, settings = assets.spec(AssetKind(HISTORY), table.name), assets.config
    key = spec.key

    @dg.multi_asset(
        name=step_name(key), specs=[spec], pool=step_name(key), required_resource_keys=resource_keys(assets)
    )
    def history(context: dg.AssetExecutionContext, config: KeepHistory) -> dg.MaterializeResult[None]:
        session = sessions(assets, context.resources)
        table_history = open_history(settings, table, source_log(settings, table, session), session)
        kept: list[HistoryCommit] = []
        try:
            for slice_ in keep_history(table_history, context.log.info, config.skip_to):
                kept.append(slice_)  # noqa: PERF402 the slices before an error are reported
            return dg.MaterializeResult(asset_key=key, metadata=_history_metadata(settings, table_history, kept))
        except MirrorError as error:
            if kept:
                context.log_event(
                    dg.AssetMaterialization(key, metadata=_history_metadata(settings, table_history, kept))
                )
            raise failure(error) from error
        finally:
            end_work(str(table.name))

    return history


def _history_metadata(
    config: Config, table_history: HistoryContext, kept: Sequence[HistoryCommit]
) -> dict[str, MetadataItem]:
    """Return what a run has appended, and the version up to which the history is complete."""
    newest = kept[-1] if kept else table_history.history.newest()
    metadata: dict[str, MetadataItem] = {
        "slices": len(kept),
        "rows": sum(slice_.rows for slice_ in kept),
        "table": dg.MetadataValue.path(shown_place(config, table_history.history.uri)),
    }
    if kept:
        metadata |= {"first_version": kept[0].first, "last_version": kept[-1].last}
    if newest is not None:
        metadata |= {"covered_version": newest.last, "generation": newest.generation, "table_id": newest.table_id}
    return metadata


def history_job(assets: MirrorAssets, tables: Sequence[TableSettings]) -> Job:
    """Return the job of the histories of these tables."""
    selection = dg.AssetSelection.assets(*(assets.key(AssetKind(HISTORY), table.name) for table in tables))
    text = f"Retain the change feed of {len(tables)} tables."
    return dg.define_asset_job(
        assets.full_name(HISTORY), selection, description=text, executor_def=dg.in_process_executor
    )
