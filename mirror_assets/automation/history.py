"""The job that keeps change feeds for ever, apart from mirroring."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition  # only for types

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.config import Config

HISTORY = "history"


def history_jobs(settings: Config) -> list[UnresolvedAssetJobDefinition]:
    """Define the job of all histories; no job when no table keeps its history."""
    keys = [asset_key(Kind.HISTORY, table.name) for table in settings.all_tables() if table.keeps_history]
    if not keys:
        return []
    selection = dg.AssetSelection.assets(*keys)
    return [
        dg.define_asset_job(HISTORY, selection, description=f"Keep the change feed of {len(keys)} tables for ever.")
    ]
