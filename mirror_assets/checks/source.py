"""The check on the source: how long its next commit can still be read."""

import time

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.checks.results import checking, retention_result
from mirror_assets.config import Config, TableSettings
from mirror_assets.mirroring.horizon import feed_horizon
from mirror_assets.mirroring.uncovered import look
from mirror_assets.resources.catalog import planning_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables


def source_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """The check retention of the table: a WARN, then an ERROR, before a commit that waits can be gone."""
    source = asset_key(Kind.SOURCE, table.name)

    @dg.asset_check(asset=source, name="retention", description="How long the next commit can still be read.")
    def retention(landing_zone: LandingZone, sources: SourceTables) -> dg.AssetCheckResult:
        with checking():
            work = planning_work(config, table, landing_zone, sources)
            horizon = feed_horizon(work, look(work), time.time())
        return retention_result(source, horizon, table.retention)

    return [retention]
