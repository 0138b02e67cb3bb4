"""Asset checks of source and mirror; those for Direct Lake read Delta log and Parquet footers, without Spark."""

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Config, DirectLakeSettings, FramesOf, TableSettings
from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.footers.footer_reader import FooterCache, FooterReader
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting
from mirror_assets.direct_lake.guardrails.skus import sku_of
from mirror_assets.direct_lake.plots.pictures import (
    Pictures,
    framing_pictures,
    growth_pictures,
    guardrail_pictures,
    layout_pictures,
)
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan
from mirror_assets.fabric.monitoring import WatchedMirror
from mirror_assets.orchestration.asset_checks import (
    CheckRuns,
    Pending,
    check_result,
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
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.materialize import failing
from mirror_assets.orchestration.resources import LandingZone, SourceTables, SparkSessions, project
from mirror_assets.pipeline.retention_consumers import mirror_guard, source_guard
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.table_log import TableLog
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.direct_lake_rules import (
    FRAMES_SAFE,
    GUARDRAILS,
    LAYOUT,
    TYPES,
    Wanted,
    check_frames,
    check_guardrails,
    check_layout,
    check_types,
)
from mirror_assets.verify.replicating import REPLICATING

LAKE_CHECKS = {
    FRAMES_SAFE: "VACUUM deletes no file that a frame or the mirror needs.",
    GUARDRAILS: "The table is within the Direct Lake limits of its capacity.",
    LAYOUT: "Files and row groups suit Direct Lake.",
    TYPES: "Direct Lake can load every column.",
}
_NO_MIRROR = "the mirror does not have the table yet"

_Found = tuple[CheckResult, Mapping[str, MetadataItem]]
_Results = Mapping[str, Callable[[], _Found]]


def source_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the source's checks readable, retention, frames_safe, and those for Direct Lake where it is configured."""
    source = asset_key(Kind.SOURCE, table.name)

    @checks_step(source, [*source_specs(source), *_specs(source, _of_source(table))])
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
    """Return the checks of the source but readable; the instance's storage caches footers."""
    table_context = composed.table(table)
    pending = pending or pending_once(table_context)

    def lake() -> _Results:
        return _source_results(instance, composed, table, sources)

    return {
        "retention": lambda: run_retention(table_context, pending),
        **_lake_runs(asset_key(Kind.SOURCE, table.name), _of_source(table), lake),
    }


def _source_results(
    instance: dg.DagsterInstance, composed: Project, table: TableSettings, sources: SourceTables
) -> _Results:
    config, now, log = composed.config, time.time(), sources.table_log(table.name)
    snapshot = TableSnapshot(str(table.name), log, _reader(instance, log), now)
    manifest = composed.table(table).manifest()
    return _table_checks(table, snapshot, lambda: source_guard(config, table, log, manifest, now), FramesOf.SOURCE)


def mirror_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """Return the checks replicating and reconciled, and those for Direct Lake.

    Those are the source's four for a local mirror; for a mirror in Fabric guardrails alone, predicted from the source.
    """
    mirror = asset_key(Kind.MIRROR, table.name)

    @checks_step(mirror, [replicating_spec(mirror), reconciled_spec(mirror), *_specs(mirror, _of_mirror(config))])
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
    """Return the checks of the mirror that need no Spark: all but reconciled."""

    def lake() -> _Results:
        if composed.config.mirror.fabric:
            return _predicted_results(instance, table, sources)
        return _stand_in_results(instance, composed.config, table, mirrored)

    return {
        REPLICATING: lambda: run_replicating(composed.table(table), mirrored),
        **_lake_runs(asset_key(Kind.MIRROR, table.name), _of_mirror(composed.config), lake),
    }


def _of_source(table: TableSettings) -> tuple[str, ...]:
    """Return the source's checks for Direct Lake; VACUUM concerns the mirror, too, whoever reads the source."""
    return tuple(LAKE_CHECKS) if table.direct_lake != DirectLakeSettings() else (FRAMES_SAFE,)


def _of_mirror(config: Config) -> tuple[str, ...]:
    """Return the mirror's checks for Direct Lake."""
    return (GUARDRAILS,) if config.mirror.fabric else tuple(LAKE_CHECKS)


def _stand_in_results(
    instance: dg.DagsterInstance, config: Config, table: TableSettings, mirrored: WatchedMirror
) -> _Results:
    status = mirrored.table(table.name)
    log = None if status is None else _log_if_there(config, status.location)
    if log is None:
        return {name: _nothing_yet(name) for name in LAKE_CHECKS}
    now = time.time()
    snapshot = TableSnapshot(f"{table.name} (mirror)", log, _reader(instance, log), now)
    return _table_checks(table, snapshot, lambda: mirror_guard(table, log, now), FramesOf.MIRROR)


def _predicted_results(instance: dg.DagsterInstance, table: TableSettings, sources: SourceTables) -> _Results:
    log = sources.table_log(table.name)
    source = TableSnapshot(str(table.name), log, _reader(instance, log), time.time())
    return {GUARDRAILS: lambda: _guardrails(table, source.guardrails.mirror)}


def _table_checks(
    table: TableSettings, snapshot: TableSnapshot, guard: Callable[[], VacuumPlan], which: FramesOf
) -> _Results:
    """Return the four checks by name, each as a function that runs it."""
    return {
        FRAMES_SAFE: lambda: _frames(table, snapshot, guard(), is_framed=table.direct_lake.frames_of is which),
        GUARDRAILS: lambda: _guardrails(table, snapshot.guardrails.table, lambda: growth_pictures(snapshot)),
        LAYOUT: lambda: _layout(table, snapshot, which),
        TYPES: lambda: (check_types(snapshot.types(), is_read=table.direct_lake.sku is not None), {}),
    }


def _frames(table: TableSettings, snapshot: TableSnapshot, plan: VacuumPlan, *, is_framed: bool) -> _Found:
    """Check the frames; add pictures if the settings name frames of this table."""
    result = check_frames(plan, snapshot.log.snapshot().metadata, table.retention.warn_seconds)
    frames = table.direct_lake.frames or table.direct_lake.exports
    return result, shown(lambda: framing_pictures(snapshot)) if is_framed and frames else {}


def _guardrails(table: TableSettings, fitting: Fitting, growth: Callable[[], Pictures] = dict) -> _Found:
    """Check the guardrails; add pictures if the settings name a capacity."""
    settings = table.direct_lake
    sku = None if settings.sku is None else sku_of(settings.sku)
    wanted = Wanted(sku, settings.mode.kind, settings.min_headroom_percent)
    result = check_guardrails(fitting.figures, wanted)
    return result, {} if sku is None else shown(lambda: guardrail_pictures(fitting.figures) | growth())


def _layout(table: TableSettings, snapshot: TableSnapshot, which: FramesOf) -> _Found:
    """Check the layout; add pictures if the check fails. The local mirror is not expected to have V-Order."""
    is_read = table.direct_lake.sku is not None and which is FramesOf.SOURCE
    result = check_layout(snapshot.layout, wants_vorder=is_read)
    return result, {} if result.passed else shown(lambda: layout_pictures(snapshot))


def _lake_runs(asset: dg.AssetKey, names: Sequence[str], lake: Callable[[], _Results]) -> CheckRuns:
    """Return the checks by name; the first that runs opens what all of them read."""
    opened = cache(lake)

    def run(name: str) -> dg.AssetCheckResult:
        result, pictures = opened()[name]()
        return check_result(asset, result, pictures=pictures)

    return {name: partial(run, name) for name in names}


def _specs(asset: dg.AssetKey, names: Sequence[str] = tuple(LAKE_CHECKS)) -> list[dg.AssetCheckSpec]:
    return [dg.AssetCheckSpec(name, asset=asset, description=LAKE_CHECKS[name]) for name in names]


def _nothing_yet(name: str) -> Callable[[], _Found]:
    return lambda: (CheckResult(name, note=_NO_MIRROR), {})


def _log_if_there(config: Config, location: str) -> TableLog | None:
    log = TableLog(location, config.access(location))
    try:
        log.newest()
    except SourceNotDelta:
        return None
    return log


def _reader(instance: dg.DagsterInstance, log: TableLog) -> FooterReader:
    """Return a footer reader that caches footers in the instance's storage for later runs."""
    cache = Path(instance.storage_directory()) / "direct_lake" / "footers"
    return FooterReader(log.uri, log.files, FooterCache.of(cache, log.uri))


def shown(draw: Callable[[], Pictures]) -> dict[str, MetadataItem]:
    """Return the pictures as metadata; without the plotting library, a text that says what to install."""
    try:
        pictures = draw()
    except PlotsMissing as error:
        return {"pictures": str(error)}
    return {f"{name}_picture": _inline(png, name.replace("_", " ")) for name, png in pictures.items()}


def _inline(png: bytes, what: str) -> MetadataItem:
    return dg.MetadataValue.md(f"![{what}](data:image/png;base64,{base64.b64encode(png).decode()})")
