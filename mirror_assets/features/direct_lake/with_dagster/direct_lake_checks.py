"""The asset checks of Direct Lake. They read Delta log and Parquet footers of the source, without Spark."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.features.direct_lake.consumers import Requirement, source_consumers
from mirror_assets.features.direct_lake.direct_lake_settings import (
    DirectLakeMode,
    DirectLakeSettings,
    DirectLakeTable,
)
from mirror_assets.features.direct_lake.footers import FooterReader
from mirror_assets.features.direct_lake.guardrails import (
    FitVerdict,
    Sku,
    TableSize,
    consequence,
    fit,
    predicted_mirror,
    sku_of,
)
from mirror_assets.features.direct_lake.layout import AdviceTopic, advice
from mirror_assets.features.direct_lake.report import InspectedTable
from mirror_assets.features.direct_lake.table_columns import Certainty, percent
from mirror_assets.features.direct_lake.vacuum import NeededFile, VacuumPlan, plan_vacuum
from mirror_assets.orchestration.asset_check import Check, CheckedTable
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.source.actions import Metadata
from mirror_assets.verify.check_result import CheckResult

FRAMES_SAFE, GUARDRAILS, LAYOUT, TYPES = "frames_safe", "guardrails", "layout", "types"
# A message names this many readers.
_MOST_READERS = 3
_FEW_DAYS = 7
# Less free than this share of a limit is a warning.
_MIN_HEADROOM_PERCENT = 10
_OF_FILES = (ErrorCode.DATA_FILE_MISSING, ErrorCode.DATA_FILE_UNREADABLE)
# Growth observed in a shorter time may be a first load or a burst of commits.
_SHORTEST_DAYS = 1.0


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
    """Check the mirror that follows from the source; without a capacity, a file without a footer is a note."""
    try:
        size = checked.share(_inspected).size
    except MirrorError as error:
        if _has_capacity(checked) or error.code not in _OF_FILES:
            raise
        return CheckResult(GUARDRAILS, note=f"not predicted: {error.what}")
    return _within_limits(checked, predicted_mirror(size))


def _within_limits(checked: CheckedTable, size: TableSize) -> CheckResult:
    settings = DirectLakeTable.of(checked.table).direct_lake
    return check_guardrails(size, sku_of(settings.sku) if settings.sku else None, settings.mode)


def check_frames(plan: VacuumPlan, metadata: Metadata, warn_seconds: float | None) -> CheckResult:
    """Fail if VACUUM would delete a needed file now, or one is missing; warn if it will within `warn_seconds`.

    `metadata` is the table's, for the statement that keeps files longer. Raises PROPERTY_UNREADABLE.
    """
    keep = f"to keep files longer: {plan.keeping(metadata)}"
    problems = []
    if plan.lost:
        problems.append(
            f"missing: {_files_of_readers(plan.lost)}, for example {plan.lost[0].path}; refresh the model, or rebuild "
            f"the mirror; {keep}"
        )
    if plan.gone:
        problems.append(
            f"the log no longer has the files of {_readers(plan.gone)}: refresh the model, or rebuild the mirror"
        )
    if plan.threatened:
        problems.append(f"VACUUM now would delete {_files_of_readers(plan.threatened)}; {keep}")
    left = None if plan.safe_until is None else max(0.0, plan.safe_until - plan.now)
    known = {"oldest_needed": plan.oldest_needed, "seconds_left": left}
    measured: dict[str, int | float | str] = {
        "version": plan.version,
        "deleted_files": len(plan.deleted),
        "deleted_bytes": plan.deleted_bytes,
        "threatened_files": len(plan.threatened),
        "lost_files": len(plan.lost),
        "kept_seconds": plan.retention_seconds,
        "needed_seconds": plan.min_safe_retention_seconds,
        **{name: value for name, value in known.items() if value is not None},
    }
    if problems:
        return CheckResult(FRAMES_SAFE, tuple(problems), measured)
    if plan.safe_until is None or left is None:
        note = f"VACUUM deletes nothing that is needed; now it would delete {len(plan.deleted):,} files"
        return CheckResult(FRAMES_SAFE, (), measured, note=note)
    until = f"{datetime.fromtimestamp(plan.safe_until, timezone.utc):%Y-%m-%d %H:%M:%S UTC}"
    note = f"VACUUM deletes nothing that is needed until {until}"
    if warn_seconds is not None and left < warn_seconds:
        return CheckResult(FRAMES_SAFE, (f"{note}, in {left / 3600:.1f} hours; {keep}",), measured, is_warning=True)
    return CheckResult(FRAMES_SAFE, (), measured, note=note)


def _files_of_readers(files: Sequence[NeededFile]) -> str:
    counted = "1 file" if len(files) == 1 else f"{len(files):,} files"
    return f"{counted} of {_readers(need for file in files for need in file.needed_by)}"


def _readers(needs: Iterable[Requirement]) -> str:
    names = sorted(set(needs))
    more = f" and {len(names) - _MOST_READERS:,} more" if len(names) > _MOST_READERS else ""
    return f"{', '.join(map(str, names[:_MOST_READERS]))}{more}"


def check_guardrails(size: TableSize, sku: Sku | None, mode: DirectLakeMode) -> CheckResult:
    """Fail over a limit at which queries fail; warn over other limits, and close to any; without a SKU, add a note.

    The model's bytes are those of the table alone.
    """
    if size.growth is not None and size.growth.days < _SHORTEST_DAYS:
        size = replace(size, growth=None)
    growth, smallest, fitting = size.growth, size.smallest, fit(sku, size) if sku else None
    fits = f"it fits into {smallest.name}" if smallest else "it certainly fits into no capacity"
    sku_name, over, near = sku.name if sku else None, list[str](), list[str]()
    for use in fitting.uses if fitting else ():
        on_sku = f"{use} on {sku_name}"
        if use.verdict is FitVerdict.OVER:
            over.append(f"{on_sku}: {consequence(mode, use.limit)}; {fits}")
        elif use.verdict is FitVerdict.UNSURE:
            near.append(f"{on_sku}: it is unknown whether hidden rows count")
        elif use.headroom_percent is not None and use.headroom_percent < _MIN_HEADROOM_PERCENT:
            near.append(f"{on_sku}: only {use.headroom_percent:.1f} % are free")
        elif use.days_left is not None and use.days_left < _FEW_DAYS:
            near.append(f"{on_sku}: at the present growth, the limit is {use.days_left:.1f} days away")
    known = {
        "files": size.files,
        "bytes": size.bytes,
        "row_groups": size.row_groups,
        "rows": size.rows,
        "hidden_rows": size.hidden_rows,
        "sku": sku_name,
        "smallest_sku": smallest.name if smallest else None,
        "headroom_percent": fitting.tightest.headroom_percent if fitting and fitting.tightest else None,
        "days_left": fitting.days_left if fitting else None,
        "files_per_day": growth.files if growth else None,
        "rows_per_day": growth.rows if growth else None,
    }
    return CheckResult(
        GUARDRAILS,
        tuple(over or near),
        {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in known.items()
            if value is not None
        },
        note="" if over or near else f"{size.table}: {fits}",
        is_warning=mode is DirectLakeMode.SQL if over else bool(near),
    )


def _layout(checked: CheckedTable) -> CheckResult:
    """Warn with all advice on the layout.

    Only Fabric writes V-Order, so its lack alone is a note unless a capacity is named.
    """
    report = checked.share(_inspected).layout
    found = advice(report)
    is_warning = any(one.topic is not AdviceTopic.VORDER or _has_capacity(checked) for one in found)
    texts = tuple(str(one) for one in found)
    metadata: dict[str, int | float | str] = {
        "files": report.files.count,
        "small_files": report.files.small,
        "bytes": report.files.total,
        "rows": report.rows,
        "row_groups": report.row_groups.count,
        "file_bytes_median": report.files.middle,
        "row_group_rows_median": report.row_groups.middle,
        "vorder_percent": round(report.vorder_percent, 3),
        "hidden_percent": round(report.hidden_percent, 3),
        "dropped_percent": round(percent(report.dropped_bytes, report.files.total), 3),
        "partitions": report.partitions.count,
    }
    if is_warning:
        return CheckResult(LAYOUT, texts, metadata, is_warning=True)
    return CheckResult(LAYOUT, (), metadata, note="; ".join(texts) or "no advice")


def _types(checked: CheckedTable) -> CheckResult:
    """Report columns that can't be loaded, or perhaps can't.

    With a capacity, the former are an error and the latter a warning; else a warning and a note. What neither log nor
    footers show is a note at most.
    """
    found, is_read = checked.share(_inspected).types, _has_capacity(checked)
    texts = {certainty: [str(one) for one in found if one.certainty is certainty] for certainty in Certainty}
    fails, may_fail = texts[Certainty.FAILS], texts[Certainty.MAY_FAIL]
    problems = (*fails, *may_fail) if is_read else tuple(fails)
    return CheckResult(
        TYPES,
        problems,
        {"fails": len(fails), "may_fail": len(may_fail), "unseen": len(texts[Certainty.UNSEEN])},
        note="" if problems else "; ".join(map(str, found)),
        is_warning=not (is_read and fails),
    )


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
