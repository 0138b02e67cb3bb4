"""Decide whether a Direct Lake report is an error, a warning or a note for a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from mirror_assets.direct_lake.advice import Topic, advice
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, SkuFit, Verdict
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import Mode, Sku, consequence
from mirror_assets.direct_lake.table_layout import LayoutReport, percent
from mirror_assets.direct_lake.type_rules import TypeIssue, Weight
from mirror_assets.direct_lake.vacuum.requirements import Requirement
from mirror_assets.direct_lake.vacuum.vacuum_plan import NeededFile, VacuumPlan
from mirror_assets.source.actions import Metadata
from mirror_assets.verify.check_result import CheckResult

FRAMES_SAFE, GUARDRAILS, LAYOUT, TYPES = "frames_safe", "guardrails", "layout", "types"
# The number of readers that a message names.
_SHOWN = 3
_FEW_DAYS = 7
# Observe growth for so many days: a first load or a burst of commits is not a trend.
_SHORTEST_DAYS = 1.0


def check_frames(plan: VacuumPlan, metadata: Metadata, warn_seconds: float | None) -> CheckResult:
    """Fail when VACUUM would delete a needed file now, or one is gone; warn when it will within `warn_seconds`.

    `metadata` is the table's, for the statement that keeps files for longer. Raises PropertyUnreadable.
    """
    problems = (*_lost(plan, metadata), *_threatened(plan, metadata))
    if problems:
        return CheckResult(FRAMES_SAFE, problems, _frames_figures(plan))
    left = _seconds_left(plan)
    if left is not None and warn_seconds is not None and left < warn_seconds:
        said = f"{_until(plan)}, in {left / 3600:.1f} hours; {_keep(plan, metadata)}"
        return CheckResult(FRAMES_SAFE, (said,), _frames_figures(plan), is_warning=True)
    return CheckResult(FRAMES_SAFE, (), _frames_figures(plan), note=_until(plan))


def _lost(plan: VacuumPlan, metadata: Metadata) -> Iterable[str]:
    if plan.lost:
        readers = _readers(need for file in plan.lost for need in file.needed_by)
        yield (
            f"gone: {_counted(plan.lost)} of {readers}, for example {plan.lost[0].path}; frame the model anew, or "
            f"rebuild the mirror; {_keep(plan, metadata)}"
        )
    if plan.gone:
        yield f"the log no longer tells the files of {_readers(plan.gone)}: frame the model anew, or rebuild the mirror"


def _threatened(plan: VacuumPlan, metadata: Metadata) -> Iterable[str]:
    if plan.threatened:
        readers = _readers(need for file in plan.threatened for need in file.needed_by)
        yield f"VACUUM now would delete {_counted(plan.threatened)} of {readers}; {_keep(plan, metadata)}"


def _until(plan: VacuumPlan) -> str:
    if plan.safe_until is None:
        return f"VACUUM takes nothing that is needed; now it would delete {len(plan.deleted):,} files"
    until = datetime.fromtimestamp(plan.safe_until, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"VACUUM takes nothing that is needed until {until}"


def _keep(plan: VacuumPlan, metadata: Metadata) -> str:
    return f"to keep files for longer: {plan.keeping(metadata)}"


def _readers(needs: Iterable[Requirement]) -> str:
    names = sorted(set(needs))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(str, names[:_SHOWN]))}{more}"


def _counted(files: tuple[NeededFile, ...]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def _seconds_left(plan: VacuumPlan) -> float | None:
    return None if plan.safe_until is None else max(0.0, plan.safe_until - plan.now)


def _frames_figures(plan: VacuumPlan) -> dict[str, int | float | str]:
    known = {
        "oldest_readable": plan.oldest_readable,
        "oldest_needed": plan.oldest_needed,
        "seconds_left": _seconds_left(plan),
    }
    return {
        "version": plan.version,
        "deleted_files": len(plan.deleted),
        "deleted_bytes": plan.deleted_bytes,
        "threatened_files": len(plan.threatened),
        "lost_files": len(plan.lost),
        "kept_seconds": plan.retention_seconds,
        "needed_seconds": plan.min_safe_retention_seconds,
        **{name: value for name, value in known.items() if value is not None},
    }


@dataclass(frozen=True)
class Wanted:
    """The capacity that a model has to fit (None: unknown), its Direct Lake mode, and the percentage to keep free."""

    sku: Sku | None
    mode: Mode
    min_headroom_percent: float


def check_guardrails(figures: TableFigures, wanted: Wanted) -> CheckResult:
    """Fail over a limit at which queries fail; warn over other limits and close to any; only add a note without a SKU.

    The model's bytes are the table's alone.
    """
    figures = _as_grown(figures)
    fitting = Fitting.of(figures)
    smallest = fitting.smallest
    fits = f"it fits into {smallest.name}" if smallest else "it fits into no capacity for sure"
    if wanted.sku is None:
        return CheckResult(
            GUARDRAILS, figures=_guardrails_figures(figures, None, smallest), note=f"{figures.table}: {fits}"
        )
    found = fitting.into(wanted.sku)
    shown = _guardrails_figures(figures, found, smallest)
    over = tuple(_over(found, wanted.mode, fits))
    if over:
        return CheckResult(GUARDRAILS, over, shown, is_warning=not wanted.mode.fails)
    near = tuple(_near(found, wanted))
    return CheckResult(GUARDRAILS, near, shown, note="" if near else f"{figures.table}: {fits}", is_warning=bool(near))


def _over(found: SkuFit, mode: Mode, fits: str) -> Iterator[str]:
    for use in found.uses:
        if use.verdict is Verdict.OVER:
            yield f"{use} on {found.sku.name}: {consequence(mode, use.limit)}; {fits}"


def _near(found: SkuFit, wanted: Wanted) -> Iterator[str]:
    for use in found.uses:
        if use.verdict is Verdict.UNSURE:
            yield f"{use} on {found.sku.name}: whether it fits can't be told"
        elif use.headroom_percent is not None and use.headroom_percent < wanted.min_headroom_percent:
            yield f"{use} on {found.sku.name}: only {use.headroom_percent:.1f} % are free"
        elif use.days_left is not None and use.days_left < _FEW_DAYS:
            yield f"{use} on {found.sku.name}: at the present growth the limit is {use.days_left:.1f} days away"


def _as_grown(figures: TableFigures) -> TableFigures:
    """Drop the growth of figures that was observed for less than a day."""
    is_short = figures.growth is not None and figures.growth.days < _SHORTEST_DAYS
    return replace(figures, growth=None) if is_short else figures


def _guardrails_figures(
    figures: TableFigures, found: SkuFit | None, smallest: Sku | None
) -> dict[str, int | float | str]:
    tightest = found.tightest if found else None
    growth = figures.growth
    known = {
        "row_groups": figures.row_groups,
        "rows": figures.rows,
        "hidden_rows": figures.hidden_rows,
        "sku": found.sku.name if found else None,
        "smallest_sku": smallest.name if smallest else None,
        "headroom_percent": tightest.headroom_percent if tightest else None,
        "days_left": found.days_left if found else None,
        "files_per_day": growth.files if growth else None,
        "rows_per_day": growth.rows if growth else None,
    }
    return {
        "files": figures.files,
        "bytes": figures.bytes,
        **{
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in known.items()
            if value is not None
        },
    }


def check_layout(report: LayoutReport, *, wants_vorder: bool) -> CheckResult:
    """Warn with all advice about the layout.

    Only Fabric writes V-Order: its lack alone is a note, unless it is wanted.
    """
    found = advice(report)
    counts = any(one.topic is not Topic.VORDER or wants_vorder for one in found)
    said = tuple(str(one) for one in found)
    note = "; ".join(said) or "there is nothing to advise"
    return CheckResult(
        LAYOUT, said if counts else (), _layout_figures(report), note="" if counts else note, is_warning=counts
    )


def _layout_figures(report: LayoutReport) -> dict[str, int | float | str]:
    spreads = {"file_bytes_median": report.file_spread, "row_group_rows_median": report.row_group_spread}
    return {
        "files": report.files,
        "small_files": report.small_files.count,
        "bytes": report.bytes,
        "rows": report.rows,
        "row_groups": report.row_groups.count,
        **{name: spread.median for name, spread in spreads.items() if spread is not None},
        "vorder_percent": round(report.vorder.rows_share, 3),
        "hidden_percent": round(report.vectors.rows_share, 3),
        "dropped_percent": round(percent(report.dropped_bytes, report.bytes), 3),
        "partitions": len(report.partitions.each),
    }


def check_types(found: Sequence[TypeIssue], *, is_read: bool) -> CheckResult:
    """Report columns that can't be loaded, or may not be.

    `is_read`: a model is known to read the table. Then the former are an error and the latter a warning; else a
    warning and a note. What neither log nor footers tell is a note at most.
    """
    fails, may_fail = _types_of(found, Weight.FAILS), _types_of(found, Weight.MAY_FAIL)
    problems = (*fails, *may_fail) if is_read else fails
    return CheckResult(
        TYPES,
        problems,
        {"fails": len(fails), "may_fail": len(may_fail), "unseen": len(_types_of(found, Weight.UNSEEN))},
        note="" if problems else "; ".join(_said(one) for one in found),
        is_warning=not (is_read and fails),
    )


def _types_of(found: Sequence[TypeIssue], weight: Weight) -> tuple[str, ...]:
    return tuple(_said(one) for one in found if one.weight is weight)


def _said(one: TypeIssue) -> str:
    look = f" ({one.statement})" if one.statement else ""
    return f"{one.column} {one.message}{look}"
