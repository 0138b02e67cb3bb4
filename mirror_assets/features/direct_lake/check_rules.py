"""Decide whether a finding about a table is an error, a warning or a note."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from mirror_assets.features.direct_lake.consumers import Requirement
from mirror_assets.features.direct_lake.direct_lake_settings import DirectLakeMode
from mirror_assets.features.direct_lake.guardrails import FitVerdict, Sku, TableSize, consequence, fit
from mirror_assets.features.direct_lake.layout import AdviceTopic, LayoutReport, advice
from mirror_assets.features.direct_lake.table_columns import Certainty, TypeIssue, percent
from mirror_assets.features.direct_lake.vacuum import NeededFile, VacuumPlan
from mirror_assets.source.actions import Metadata
from mirror_assets.verify.check_result import CheckResult

FRAMES_SAFE, GUARDRAILS, LAYOUT, TYPES = "frames_safe", "guardrails", "layout", "types"
# A message names this many readers.
_MOST_READERS = 3
_FEW_DAYS = 7
# Less free than this share of a limit is a warning.
_MIN_HEADROOM_PERCENT = 10
# Growth observed in a shorter time may be a first load or a burst of commits.
_SHORTEST_DAYS = 1.0
_Metadata = dict[str, int | float | str]


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
    measured: _Metadata = {
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


def check_layout(report: LayoutReport, *, needs_vorder: bool) -> CheckResult:
    """Warn with all advice on the layout.

    Only Fabric writes V-Order, so its lack alone is a note unless it is needed.
    """
    found = advice(report)
    is_warning = any(one.topic is not AdviceTopic.VORDER or needs_vorder for one in found)
    texts = tuple(str(one) for one in found)
    metadata: _Metadata = {
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


def check_types(found: Sequence[TypeIssue], *, is_read: bool) -> CheckResult:
    """Report columns that can't be loaded, or perhaps can't.

    If a model reads the table (`is_read`), the former are an error and the latter a warning; else a warning and a note.
    What neither log nor footers show is a note at most.
    """
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
