"""Checks on the table folder and on its lag."""

import time

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.checks.results import check_result, checking
from mirror_assets.checks.runs import is_slice_run
from mirror_assets.config import Config, TableSettings
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.due import NOT_HELD, held_finding
from mirror_assets.mirroring.lag import table_lag
from mirror_assets.mirroring.uncovered import look
from mirror_assets.resources.catalog import mirror_of, planning_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.verify.landed import full_continuity, incremental_continuity, metadata_unchanged
from mirror_assets.verify.timeliness import Lag, check_lag

_CONTINUITY = "Files in sequence, as committed. A run of slices looks at what is new, a run of checks at everything."


def landed_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """file_continuity, metadata_unchanged, lag and not_held of the table."""
    zone = asset_key(Kind.LANDING_ZONE, table.name)

    @dg.asset_check(asset=zone, name="file_continuity", blocking=True, description=_CONTINUITY)
    def continuity(context: dg.AssetCheckExecutionContext, landing_zone: LandingZone) -> dg.AssetCheckResult:
        with checking():
            store, applied = landing_zone.store(), _applied(config, table.name, landing_zone)
            continuous = incremental_continuity if is_slice_run(context) else full_continuity
            return check_result(zone, continuous(store, table.name, applied))

    @dg.asset_check(
        asset=zone, name="metadata_unchanged", blocking=True, description="_metadata.json declares the first keys."
    )
    def metadata(landing_zone: LandingZone) -> dg.AssetCheckResult:
        with checking():
            return check_result(zone, metadata_unchanged(landing_zone.store(), table.name, table.mirror_keys))

    @dg.asset_check(asset=zone, name="lag", description="How long the oldest uncovered commit has waited.")
    def lag(landing_zone: LandingZone, sources: SourceTables) -> dg.AssetCheckResult:
        with checking():
            work = planning_work(config, table, landing_zone, sources)
            return _lag_result(zone, table, table_lag(look(work), time.time()))

    @dg.asset_check(
        asset=zone, name=NOT_HELD, blocking=True, description="The table does not wait for a person to have it rebuilt."
    )
    def not_held(landing_zone: LandingZone, sources: SourceTables) -> dg.AssetCheckResult:
        with checking():
            return check_result(zone, held_finding(planning_work(config, table, landing_zone, sources)))

    return [continuity, metadata, lag, not_held]


def _lag_result(zone: dg.AssetKey, table: TableSettings, lag: Lag) -> dg.AssetCheckResult:
    error = check_lag(lag, table.lag.error_seconds)
    if not error.passed:
        return check_result(zone, error)
    return check_result(zone, check_lag(lag, table.lag.warn_seconds), dg.AssetCheckSeverity.WARN)


def _applied(config: Config, table: TableName, zone: LandingZone) -> int | None:
    """The last number that was applied: 0 when the mirror does not have the table yet, None for Fabric."""
    if config.mirror.fabric is not None:
        return None  # it numbers nothing: no reason to ask
    status = mirror_of(config, zone).table(table)
    return status.applied_number if status else 0
