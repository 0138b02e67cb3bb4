"""The job that keeps change feeds for ever, and its schedule: mirroring has nothing to do with either."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition  # only for types

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.automation.switch import is_on
from mirror_assets.config import Config

HISTORY = "history"
# Every night: the feed of a commit can be read for a week by default, so several nights may be missed.
_NIGHTLY = "0 3 * * *"


def history_jobs(settings: Config) -> list[UnresolvedAssetJobDefinition]:
    """The job of all histories; none where none is kept."""
    keys = [asset_key(Kind.HISTORY, table.name) for table in settings.all_tables() if table.keeps_history]
    if not keys:
        return []
    selection = dg.AssetSelection.assets(*keys)
    return [
        dg.define_asset_job(HISTORY, selection, description=f"Keep the change feed of {len(keys)} tables for ever.")
    ]


def history_schedule(job: dg.JobDefinition | UnresolvedAssetJobDefinition) -> dg.ScheduleDefinition:
    """The job every night, where MIRROR_SENSORS is `on`."""
    status = dg.DefaultScheduleStatus.RUNNING if is_on() else dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(name=HISTORY, job=job, cron_schedule=_NIGHTLY, default_status=status)
