"""Checks on source and mirror as Direct Lake reads them, from log and footers; no Spark."""

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dagster as dg

from mirror_assets.audit.direct_lake_rules import (
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
from mirror_assets.audit.finding import CheckResult
from mirror_assets.config import Config, FramesOf, TableSettings
from mirror_assets.delta.errors import SourceNotDelta
from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.footers.footer_reader import FooterCache, FooterReader
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import sku_of
from mirror_assets.direct_lake.plots.pictures import (
    Pictures,
    framing_pictures,
    growth_pictures,
    guardrail_pictures,
    layout_pictures,
)
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan
from mirror_assets.orchestration.asset_checks import check_result, checking
from mirror_assets.orchestration.asset_names import Kind, MetadataItem, asset_key
from mirror_assets.orchestration.resources import LandingZone, SourceTables, mirror_of, project
from mirror_assets.pipeline.retention_consumers import mirror_guard, source_guard

_DESCRIPTIONS = {
    FRAMES_SAFE: "VACUUM takes nothing that a frame, or the mirror, needs.",
    GUARDRAILS: "The table is within its capacity's limits for Direct Lake.",
    LAYOUT: "Files and row groups are as Direct Lake reads them well.",
    TYPES: "Direct Lake can load every column.",
}
_NO_MIRROR = "the mirror does not have the table yet"

_Found = tuple[CheckResult, Mapping[str, MetadataItem]]


def source_lake_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """frames_safe, guardrails, layout and types of the source, in one step: they share what they read."""
    source = asset_key(Kind.SOURCE, table.name)

    @_checks(source, tuple(_DESCRIPTIONS))
    def found(
        context: dg.AssetCheckExecutionContext, landing_zone: LandingZone, sources: SourceTables
    ) -> Iterator[dg.AssetCheckResult]:
        with checking():
            now, log = time.time(), sources.table_log(table.name)
            look = TableSnapshot(str(table.name), log, _reader(context, log), now)
            manifest = project(config, landing_zone, sources).table(table).manifest()
            results = _table_results(
                table, look, lambda: source_guard(config, table, log, manifest, now), FramesOf.SOURCE
            )
            yield from _requested(context, source, results)

    return found


def mirror_lake_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    """The same of the mirror where this machine can read it; of one in Fabric, guardrails of what is predicted."""
    return _predicted_checks(table) if config.mirror.fabric else _stand_in_checks(config, table)


def _stand_in_checks(config: Config, table: TableSettings) -> dg.AssetChecksDefinition:
    mirror = asset_key(Kind.MIRROR, table.name)

    @_checks(mirror, tuple(_DESCRIPTIONS))
    def found(context: dg.AssetCheckExecutionContext, landing_zone: LandingZone) -> Iterator[dg.AssetCheckResult]:
        with checking():
            status = mirror_of(config, landing_zone).table(table.name)
            log = None if status is None else _log_if_there(status.location)
            if log is None:
                yield from _requested(context, mirror, {name: _nothing_yet(name) for name in _DESCRIPTIONS})
                return
            now = time.time()
            look = TableSnapshot(f"{table.name} (mirror)", log, _reader(context, log), now)
            results = _table_results(table, look, lambda: mirror_guard(table, log, now), FramesOf.MIRROR)
            yield from _requested(context, mirror, results)

    return found


def _predicted_checks(table: TableSettings) -> dg.AssetChecksDefinition:
    mirror = asset_key(Kind.MIRROR, table.name)

    @_checks(mirror, (GUARDRAILS,))
    def found(context: dg.AssetCheckExecutionContext, sources: SourceTables) -> Iterator[dg.AssetCheckResult]:
        with checking():
            log = sources.table_log(table.name)
            predicted = TableSnapshot(str(table.name), log, _reader(context, log), time.time()).guardrails.mirror
            figures = predicted.figures if predicted else None
            yield from _requested(context, mirror, {GUARDRAILS: lambda: _guardrails(table, figures)})

    return found


_Results = Mapping[str, Callable[[], _Found]]


def _table_results(
    table: TableSettings, look: TableSnapshot, guard: Callable[[], VacuumPlan], which: FramesOf
) -> _Results:
    """The four checks, each to be had when it is asked for."""
    return {
        FRAMES_SAFE: lambda: _frames(table, look, guard(), is_framed=table.direct_lake.frames_of is which),
        GUARDRAILS: lambda: _guardrails(table, look.guardrails.table.figures, lambda: growth_pictures(look)),
        LAYOUT: lambda: _layout(table, look, which),
        TYPES: lambda: (check_types(look.types(), is_read=table.direct_lake.sku is not None), {}),
    }


def _frames(table: TableSettings, look: TableSnapshot, plan: VacuumPlan, *, is_framed: bool) -> _Found:
    """With pictures where a model is framed."""
    result = check_frames(plan, look.log.snapshot().metadata, table.retention.warn_seconds)
    frames = table.direct_lake.frames or table.direct_lake.exports
    return result, shown(lambda: framing_pictures(look)) if is_framed and frames else {}


def _guardrails(table: TableSettings, figures: TableFigures | None, growth: Callable[[], Pictures] = dict) -> _Found:
    """With pictures where a capacity is named."""
    settings = table.direct_lake
    sku = None if settings.sku is None else sku_of(settings.sku)
    wanted = Wanted(sku, settings.mode.kind, settings.min_headroom_percent)
    result = check_guardrails(figures, wanted)
    return result, {} if sku is None or figures is None else shown(lambda: guardrail_pictures(figures) | growth())


def _layout(table: TableSettings, look: TableSnapshot, which: FramesOf) -> _Found:
    """With pictures where there is something to mend. The stand-in's mirror is no place to expect V-Order at."""
    is_read = table.direct_lake.sku is not None and which is FramesOf.SOURCE
    result = check_layout(look.layout, wants_vorder=is_read)
    return result, {} if result.passed else shown(lambda: layout_pictures(look))


def _requested(
    context: dg.AssetCheckExecutionContext, asset: dg.AssetKey, results: _Results
) -> Iterator[dg.AssetCheckResult]:
    """Results of the checks that the run selected."""
    selected = {key.name for key in context.selected_asset_check_keys}
    for name, found in results.items():
        if name in selected:
            result, pictures = found()
            yield check_result(asset, result, pictures=pictures)


def _checks(
    asset: dg.AssetKey, names: tuple[str, ...]
) -> Callable[[Callable[..., Iterator[dg.AssetCheckResult]]], dg.AssetChecksDefinition]:
    specs = [dg.AssetCheckSpec(name, asset=asset, description=_DESCRIPTIONS[name]) for name in names]
    return dg.multi_asset_check(name=f"{'__'.join(asset.path)}_direct_lake", specs=specs, can_subset=True)


def _nothing_yet(name: str) -> Callable[[], _Found]:
    return lambda: (CheckResult(name, note=_NO_MIRROR), {})


def _log_if_there(location: str) -> TableLog | None:
    log = TableLog(location)
    try:
        log.newest()
    except SourceNotDelta:
        return None
    return log


def _reader(context: dg.AssetCheckExecutionContext, log: TableLog) -> FooterReader:
    """Facts of footers outlive the run beside what else the instance stores."""
    cache = Path(context.instance.storage_directory()) / "direct_lake" / "footers"
    return FooterReader(log.uri, log.files, FooterCache.of(cache, log.uri))


def shown(draw: Callable[[], Pictures]) -> dict[str, MetadataItem]:
    """The pictures as metadata; where they can't be drawn, what to install."""
    try:
        pictures = draw()
    except PlotsMissing as error:
        return {"pictures": str(error)}
    return {f"{name}_picture": _inline(png, name.replace("_", " ")) for name, png in pictures.items()}


def _inline(png: bytes, what: str) -> MetadataItem:
    return dg.MetadataValue.md(f"![{what}](data:image/png;base64,{base64.b64encode(png).decode()})")
