"""The asset checks of Direct Lake, for source and mirror. They read Delta log and Parquet footers, without Spark."""

import base64
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Config, DirectLakeSettings, FramesOf, TableSettings
from mirror_assets.direct_lake.check_rules import (
    FRAMES_SAFE,
    GUARDRAILS,
    LAYOUT,
    TYPES,
    WantedCapacity,
    check_frames,
    check_guardrails,
    check_layout,
    check_types,
)
from mirror_assets.direct_lake.consumers import source_consumers, table_frames
from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.footer_reader import FooterCache, FooterReader
from mirror_assets.direct_lake.framing import framing_series
from mirror_assets.direct_lake.guardrails import CapacityFit, sku_of
from mirror_assets.direct_lake.pictures import framing_bars, use_of_limits
from mirror_assets.direct_lake.report import InspectedTable
from mirror_assets.direct_lake.vacuum import RetentionConsumers, plan_vacuum
from mirror_assets.fabric.monitoring import WatchedMirror
from mirror_assets.orchestration.asset_checks import CheckRuns, check_result
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.resources import SourceTables
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.table_log import TableLog
from mirror_assets.verify.check_result import CheckResult

LAKE_CHECKS = {
    FRAMES_SAFE: "VACUUM deletes no file that a frame or the mirror needs.",
    GUARDRAILS: "The table is within the Direct Lake limits of its capacity.",
    LAYOUT: "Files and row groups suit Direct Lake.",
    TYPES: "Direct Lake can load every column.",
}
_Found: TypeAlias = tuple[CheckResult, Mapping[str, MetadataItem]]
_Results: TypeAlias = Mapping[str, Callable[[], _Found]]


def lake_check_specs(kind: Kind, config: Config, table: TableSettings) -> list[dg.AssetCheckSpec]:
    """Return the checks of the table's source or mirror."""
    return [
        dg.AssetCheckSpec(name, asset=asset_key(kind, table.name), description=LAKE_CHECKS[name])
        for name in _names(kind, config, table)
    ]


def lake_check_runs(
    kind: Kind,
    instance: dg.DagsterInstance,
    composed: Project,
    table: TableSettings,
    sources: SourceTables,
    mirrored: WatchedMirror | None = None,
) -> CheckRuns:
    """Return the checks by name, each as a function that runs it; the first that runs opens the table for all.

    The mirror's checks need `mirrored`. The instance's storage caches footers.
    """
    config = composed.config

    def results() -> _Results:
        now = time.time()
        if kind is Kind.SOURCE or config.mirror.fabric:
            log = sources.table_log(table.name)
            inspected = _inspected(instance, str(table.name), log, now)
            if kind is not Kind.SOURCE:
                return {GUARDRAILS: lambda: _guardrails(table, inspected.guardrails.mirror)}
            manifest = composed.table(table).manifest()
            return _results(table, inspected, FramesOf.SOURCE, lambda: source_consumers(config, table, log, manifest))
        status = None if mirrored is None else mirrored.table(table.name)
        mirror_log = None if status is None else _log_if_exists(config, status.location)
        if mirror_log is None:
            missing = "the mirror does not have the table yet"
            return {name: partial(lambda name: (CheckResult(name, note=missing), {}), name) for name in LAKE_CHECKS}
        inspected = _inspected(instance, f"{table.name} (mirror)", mirror_log, now)
        frames = partial(table_frames, table, FramesOf.MIRROR, mirror_log)
        return _results(table, inspected, FramesOf.MIRROR, lambda: RetentionConsumers(frames()))

    opened = cache(results)

    def run(name: str) -> dg.AssetCheckResult:
        result, pictures = opened()[name]()
        return check_result(asset_key(kind, table.name), result, pictures=pictures)

    return {name: partial(run, name) for name in _names(kind, config, table)}


def _names(kind: Kind, config: Config, table: TableSettings) -> tuple[str, ...]:
    """Return the checks of a source or mirror: all four where Direct Lake is configured, and for a local mirror.

    VACUUM of a source concerns the mirror also, so frames_safe is always there. Of a mirror in Fabric, only the
    guardrails can be predicted.
    """
    if kind is not Kind.SOURCE:
        return (GUARDRAILS,) if config.mirror.fabric else tuple(LAKE_CHECKS)
    return tuple(LAKE_CHECKS) if table.direct_lake != DirectLakeSettings() else (FRAMES_SAFE,)


def _inspected(instance: dg.DagsterInstance, name: str, log: TableLog, now: float) -> InspectedTable:
    cached = FooterCache.of(Path(instance.storage_directory()) / "direct_lake" / "footers", log.uri)
    return InspectedTable(name, log, FooterReader(log.uri, log.files, cached), now)


def _log_if_exists(config: Config, location: str) -> TableLog | None:
    log = TableLog(location, config.access(location))
    try:
        log.newest()
    except SourceNotDelta:
        return None
    return log


def _results(
    table: TableSettings, inspected: InspectedTable, which: FramesOf, consumers: Callable[[], RetentionConsumers]
) -> _Results:
    settings, log = table.direct_lake, inspected.log

    def frames() -> _Found:
        needed = consumers()
        plan = plan_vacuum(log, inspected.now, needed.frames, needed.mirror)
        result = check_frames(plan, log.snapshot().metadata, table.retention.warn_seconds)
        if settings.frames_of is not which or not (settings.frames or settings.exports):
            return result, {}
        points = framing_series(log, inspected.span)
        return result, _picture("framing", lambda: framing_bars(points, inspected.name))

    def layout() -> _Found:
        # The local mirror is not expected to have V-Order.
        wants_vorder = settings.sku is not None and which is FramesOf.SOURCE
        return check_layout(inspected.layout, wants_vorder=wants_vorder), {}

    return {
        FRAMES_SAFE: frames,
        GUARDRAILS: lambda: _guardrails(table, inspected.guardrails.table),
        LAYOUT: layout,
        TYPES: lambda: (check_types(inspected.types, is_read=settings.sku is not None), {}),
    }


def _guardrails(table: TableSettings, fitting: CapacityFit) -> _Found:
    """Check the guardrails; add a picture if the settings name a capacity."""
    settings = table.direct_lake
    sku = None if settings.sku is None else sku_of(settings.sku)
    wanted = WantedCapacity(sku, settings.mode)
    result = check_guardrails(fitting.figures, wanted)
    return result, {} if sku is None else _picture("use_of_limits", lambda: use_of_limits(fitting))


def _picture(name: str, draw: Callable[[], bytes]) -> dict[str, MetadataItem]:
    """Return the picture as metadata; without matplotlib, a text that says what to install."""
    try:
        encoded = base64.b64encode(draw()).decode()
    except PlotsMissing as error:
        return {"pictures": str(error)}
    title = name.replace("_", " ")
    return {f"{name}_picture": dg.MetadataValue.md(f"![{title}](data:image/png;base64,{encoded})")}
