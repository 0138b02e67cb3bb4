"""The check on the mirror: equal to the source at the covered version."""

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.checks.results import check_result, checking
from mirror_assets.config import Config, TableSettings
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.resources.catalog import mirror_of, table_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables
from mirror_assets.resources.spark import SparkSessions
from mirror_assets.verify.reconciliation import ReconcileState, check_reconciled

_WAITING = (ReconcileState.PENDING, ReconcileState.MISSING, ReconcileState.LOADING)


def mirror_checks(config: Config, table: TableSettings) -> list[dg.AssetChecksDefinition]:
    """The check reconciled of the table: an ERROR on a difference, a WARN while files wait to be applied."""
    mirror = asset_key(Kind.MIRROR, table.name)

    @dg.asset_check(asset=mirror, name="reconciled", blocking=True, description="The mirror equals the source.")
    def reconciled(landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions) -> dg.AssetCheckResult:
        with checking():
            work = table_work(config, table, landing_zone, sources, spark)
            result = reconcile_table(work, mirror_of(config, landing_zone))
        severity = dg.AssetCheckSeverity.WARN if result.state in _WAITING else dg.AssetCheckSeverity.ERROR
        return check_result(mirror, check_reconciled(result), severity)

    return [reconciled]
