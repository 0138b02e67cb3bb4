"""Asset checks of source and mirror: each asset's own, and those of Direct Lake."""

from collections.abc import Iterator
from functools import partial

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Config, TableSettings
from mirror_assets.direct_lake.asset_checks import lake_check_runs, lake_check_specs
from mirror_assets.fabric.monitoring import WatchedMirror
from mirror_assets.orchestration.asset_checks import (
    CheckRuns,
    Pending,
    checks_step,
    pending_once,
    readable_runs,
    reconciled_spec,
    replicating_spec,
    run_reconciled,
    run_replicating,
    run_retention,
    run_selected,
    source_specs,
)
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.materialize import failing
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.verify.replicating import REPLICATING


def source_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the source's checks: readable, retention, and those of Direct Lake."""
    source = asset_key(Kind.SOURCE, table.name)

    @checks_step(source, [*source_specs(source), *lake_check_specs(Kind.SOURCE, config, table)])
    def checks(
        context: dg.AssetCheckExecutionContext, landing_zone: LandingZone, sources: SourceTables
    ) -> Iterator[dg.AssetCheckResult]:
        with failing():
            composed = project(config, landing_zone, sources)
        readable = readable_runs(composed.table(table))
        yield from run_selected(context, {**readable, **source_runs(context.instance, composed, table, sources)})

    return checks


def source_runs(
    instance: dg.DagsterInstance,
    composed: Project,
    table: TableSettings,
    sources: SourceTables,
    pending: Pending | None = None,
) -> CheckRuns:
    """Return the checks of the source except readable."""
    table_context = composed.table(table)
    pending = pending or pending_once(table_context)
    return {
        "retention": lambda: run_retention(table_context, pending),
        **lake_check_runs(Kind.SOURCE, instance, composed, table, sources),
    }


def mirror_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the mirror's checks: replicating, reconciled, and those of Direct Lake."""
    mirror = asset_key(Kind.MIRROR, table.name)
    lake_specs = lake_check_specs(Kind.MIRROR, config, table)

    @checks_step(mirror, [replicating_spec(mirror), reconciled_spec(mirror), *lake_specs])
    def checks(
        context: dg.AssetCheckExecutionContext, landing_zone: LandingZone, sources: SourceTables, spark: SparkSessions
    ) -> Iterator[dg.AssetCheckResult]:
        with failing():
            composed = project(config, landing_zone, sources)
            mirrored = composed.mirror()
        runs = mirror_runs(context.instance, composed, table, sources, mirrored)
        with_spark = partial(project, config, landing_zone, sources, spark, lands=False)
        yield from run_selected(context, {**runs, "reconciled": lambda: run_reconciled(with_spark(), table)})

    return checks


def mirror_runs(
    instance: dg.DagsterInstance,
    composed: Project,
    table: TableSettings,
    sources: SourceTables,
    mirrored: WatchedMirror,
) -> CheckRuns:
    """Return the checks of the mirror that need no Spark: all except reconciled."""
    return {
        REPLICATING: lambda: run_replicating(composed.table(table), mirrored),
        **lake_check_runs(Kind.MIRROR, instance, composed, table, sources, mirrored),
    }
