"""Whether a table fits into a capacity's limits for Direct Lake, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mirror_assets.audit.finding import CheckResult
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.fit import SkuFit, Use, Verdict, fit, smallest_fit
from mirror_assets.direct_lake.guardrails.modes import Mode, consequence
from mirror_assets.direct_lake.guardrails.skus import Sku

GUARDRAILS = "guardrails"
_FEW_DAYS = 7
# A first load, or a burst of commits, is no growth that goes on.
_SHORTEST_DAYS = 1.0


@dataclass(frozen=True)
class Wanted:
    """The capacity that a model is to fit into, None for none, its kind, and the percentage of limits to stay free."""

    sku: Sku | None
    mode: Mode
    min_headroom_percent: float


def check_guardrails(figures: TableFigures | None, wanted: Wanted) -> CheckResult:
    """An error over a limit where queries then fail, else a warning, as for what is nearly over; a note without a SKU.

    `figures` None: the rows are not known, so nothing can be predicted. The model's bytes are the table's alone.
    """
    if figures is None:
        return CheckResult(GUARDRAILS, note="the table's files don't tell their rows, so nothing can be predicted")
    figures = _as_grown(figures)
    smallest = smallest_fit([figures])
    fits = f"it fits into {smallest.name}" if smallest else "it fits into no capacity for sure"
    if wanted.sku is None:
        return CheckResult(GUARDRAILS, figures=_figures(figures, None, smallest), note=f"{figures.table}: {fits}")
    found = fit(wanted.sku, [figures])
    shown = _figures(figures, found, smallest)
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
        elif _is_soon(use):
            yield f"{use} on {found.sku.name}: at the present growth the limit is {use.days_left:.1f} days away"


def _is_soon(use: Use) -> bool:
    return use.days_left is not None and use.days_left < _FEW_DAYS


def _as_grown(figures: TableFigures) -> TableFigures:
    """The figures with their growth only where it was seen for a day at least."""
    is_short = figures.growth is not None and figures.growth.days < _SHORTEST_DAYS
    return replace(figures, growth=None) if is_short else figures


def _figures(figures: TableFigures, found: SkuFit | None, smallest: Sku | None) -> dict[str, int | float | str]:
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
        **{name: _rounded(value) for name, value in known.items() if value is not None},
    }


def _rounded(value: int | float | str) -> int | float | str:
    return round(value, 3) if isinstance(value, float) else value
