"""The asset checks of Direct Lake, for source and mirror. They read Delta log and Parquet footers, without Spark."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.features.direct_lake.check_rules import (
    FRAMES_SAFE,
    GUARDRAILS,
    LAYOUT,
    TYPES,
    check_frames,
    check_guardrails,
    check_layout,
    check_types,
)
from mirror_assets.features.direct_lake.consumers import RetentionConsumers, source_consumers, table_frames
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeSettings, DirectLakeTable, FramesOf
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.framing import framing_series
from mirror_assets.features.direct_lake.guardrails import TableSize, sku_of
from mirror_assets.features.direct_lake.report import InspectedTable
from mirror_assets.features.direct_lake.vacuum import plan_vacuum
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.log import DeltaLog
from mirror_assets.verify.check_result import CheckResult

_DESCRIPTIONS = {
    FRAMES_SAFE: "VACUUM deletes no file that a frame or the mirror needs.",
    GUARDRAILS: "The table is within the Direct Lake limits of its capacity.",
    LAYOUT: "Files and row groups suit Direct Lake.",
    TYPES: "Direct Lake can load every column.",
}
_Results: TypeAlias = Mapping[str, Callable[[], CheckResult]]


def _source_results(checked: CheckedTable) -> _Results:
    table, log = checked.table, checked.composed.log(checked.table.name)

    def consumers() -> RetentionConsumers:
        return source_consumers(checked.composed.config, table, log, checked.context.manifest())

    return _results(table, _inspected(checked, str(table.name), log), FramesOf.SOURCE, consumers)


def _mirror_results(checked: CheckedTable) -> _Results:
    table, config = checked.table, checked.composed.config
    if config.mirror_place:
        source = _inspected(checked, str(table.name), checked.composed.log(table.name))
        return {GUARDRAILS: lambda: _guardrails(table, source.guardrails.mirror.size)}
    status = checked.mirror.table(table.name)
    missing = {
        name: partial(CheckResult, name, note="the mirror does not have the table yet") for name in _DESCRIPTIONS
    }
    if status is None:
        return missing
    log = DeltaLog(status.location, config.access(status.location))
    try:
        log.newest()
    except SourceNotDelta:
        return missing
    inspected = _inspected(checked, f"{table.name} (mirror)", log)
    frames = partial(table_frames, table, FramesOf.MIRROR, log)
    return _results(table, inspected, FramesOf.MIRROR, lambda: RetentionConsumers(frames()))


def _checks(
    kind: AssetKind,
    results: Callable[[CheckedTable], _Results],
    applies: Callable[[Config, TableSettings, str], bool],
) -> tuple[Check, ...]:
    """Return the four checks of the source or the mirror; the first that runs opens the table for all."""
    return tuple(
        Check(
            name,
            kind,
            description,
            partial(lambda name, checked: checked.share(results)[name](), name),
            # The mirror is one of those who need files.
            follows=("retention",) if name == FRAMES_SAFE and kind == AssetKind.SOURCE else (),
            applies=partial(lambda name, config, table: applies(config, table, name), name),
        )
        for name, description in _DESCRIPTIONS.items()
    )


DIRECT_LAKE_CHECKS = (
    *_checks(
        AssetKind.SOURCE,
        _source_results,
        # The mirror also needs the files that frames_safe is about.
        lambda _, table, name: name == FRAMES_SAFE or DirectLakeTable.of(table).direct_lake != DirectLakeSettings(),
    ),
    *_checks(
        AssetKind.MIRROR,
        _mirror_results,
        # In Fabric, only the guardrails can be predicted.
        lambda config, _, name: name == GUARDRAILS or config.mirror_place is None,
    ),
)


def _inspected(checked: CheckedTable, name: str, log: DeltaLog) -> InspectedTable:
    """Return the table, whose footers are cached in the storage of the Dagster instance."""
    cache = Path(checked.instance.storage_directory()) / "direct_lake" / "footers"
    return InspectedTable(name, log, FooterReader(log.uri, log.files, cache), time.time())


def _results(
    table: TableSettings, inspected: InspectedTable, which: FramesOf, consumers: Callable[[], RetentionConsumers]
) -> _Results:
    settings, log = DirectLakeTable.of(table).direct_lake, inspected.log

    def frames() -> CheckResult:
        plan = plan_vacuum(log, inspected.now, *consumers())
        result = check_frames(plan, log.snapshot().metadata, table.retention.warn_seconds)
        if settings.frames_of is which and (settings.frames or settings.exports):
            for effect in [point.effect for point in framing_series(log, inspected.span)[-1:]]:
                known = {"rows_kept": effect.kept.rows, "rows_to_load": effect.reloaded.rows}
                known_rows = {name: rows for name, rows in known.items() if rows is not None}
                result = replace(
                    result, metadata=result.metadata | known_rows | {"bytes_to_load": effect.bytes_to_load}
                )
        return result

    def layout() -> CheckResult:
        # The local mirror is not expected to have V-Order.
        needs_vorder = settings.sku is not None and which is FramesOf.SOURCE
        return check_layout(inspected.layout, needs_vorder=needs_vorder)

    return {
        FRAMES_SAFE: frames,
        GUARDRAILS: lambda: _guardrails(table, inspected.guardrails.table.size),
        LAYOUT: layout,
        TYPES: lambda: check_types(inspected.types, is_read=settings.sku is not None),
    }


def _guardrails(table: TableSettings, size: TableSize) -> CheckResult:
    settings = DirectLakeTable.of(table).direct_lake
    return check_guardrails(size, sku_of(settings.sku) if settings.sku else None, settings.mode)
