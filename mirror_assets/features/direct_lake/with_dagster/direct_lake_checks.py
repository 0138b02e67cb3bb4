"""The asset checks of Direct Lake. They read Delta log and Parquet footers of the source, without Spark."""

import time
from pathlib import Path

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
from mirror_assets.features.direct_lake.consumers import source_consumers
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeSettings, DirectLakeTable
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.guardrails import TableSize, predicted_mirror, sku_of
from mirror_assets.features.direct_lake.report import InspectedTable
from mirror_assets.features.direct_lake.vacuum import plan_vacuum
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.verify.check_result import CheckResult


def _inspected(checked: CheckedTable) -> InspectedTable:
    """Return the source, whose footers are cached in the storage of the Dagster instance."""
    name, cache = checked.table.name, Path(checked.instance.storage_directory()) / "direct_lake" / "footers"
    log = checked.composed.log(name)
    return InspectedTable(str(name), log, FooterReader(log.uri, log.files, cache), time.time())


def _frames_safe(checked: CheckedTable) -> CheckResult:
    table, inspected = checked.table, checked.share(_inspected)
    log = inspected.log
    consumers = source_consumers(checked.composed.config, table, log, checked.context.manifest())
    plan = plan_vacuum(log, inspected.now, *consumers)
    return check_frames(plan, log.snapshot().metadata, table.retention.warn_seconds)


def _guardrails(checked: CheckedTable) -> CheckResult:
    return _within_limits(checked, checked.share(_inspected).size)


def _predicted_guardrails(checked: CheckedTable) -> CheckResult:
    return _within_limits(checked, predicted_mirror(checked.share(_inspected).size))


def _within_limits(checked: CheckedTable, size: TableSize) -> CheckResult:
    settings = DirectLakeTable.of(checked.table).direct_lake
    return check_guardrails(size, sku_of(settings.sku) if settings.sku else None, settings.mode)


def _layout(checked: CheckedTable) -> CheckResult:
    return check_layout(checked.share(_inspected).layout, needs_vorder=_has_capacity(checked))


def _types(checked: CheckedTable) -> CheckResult:
    return check_types(checked.share(_inspected).types, is_read=_has_capacity(checked))


def _has_capacity(checked: CheckedTable) -> bool:
    return DirectLakeTable.of(checked.table).direct_lake.sku is not None


def _is_read(_: Config, table: TableSettings) -> bool:
    """Whether settings say that a model reads the source."""
    return DirectLakeTable.of(table).direct_lake != DirectLakeSettings()


_WITHIN_LIMITS = "The table is within the Direct Lake limits of its capacity."
DIRECT_LAKE_CHECKS = (
    Check(
        FRAMES_SAFE,
        AssetKind.SOURCE,
        "VACUUM deletes no file that a frame or the mirror needs.",
        _frames_safe,
        follows=("retention",),  # the mirror is one of those who need files
    ),
    Check(GUARDRAILS, AssetKind.SOURCE, _WITHIN_LIMITS, _guardrails, applies=_is_read),
    Check(LAYOUT, AssetKind.SOURCE, "Files and row groups suit Direct Lake.", _layout, applies=_is_read),
    Check(TYPES, AssetKind.SOURCE, "Direct Lake can load every column.", _types, applies=_is_read),
    Check(GUARDRAILS, AssetKind.MIRROR, _WITHIN_LIMITS, _predicted_guardrails),
)
