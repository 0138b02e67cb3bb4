"""Compare tables with capacities' limits (reference `direct-lake` §1.1, §1.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import SKUS, Limit, Sku


class Verdict(str, Enum):
    """Whether a figure is within its limit; unsure: it is not known, or only hidden rows lead over it."""

    FITS = "fits"
    UNSURE = "unsure"
    OVER = "over"


@dataclass(frozen=True)
class Use:
    """One figure against its limit. `table` is None for the model; `allowed` is None for unlimited.

    `days_left` is when the limit is reached at the present growth: None where that isn't known, or doesn't lead there.
    """

    limit: Limit
    table: str | None
    used: int | None
    allowed: int | None
    verdict: Verdict
    days_left: float | None = None

    @property
    def headroom_percent(self) -> float | None:
        """How much of the limit is free, negative beyond it; None without a limit, or a figure."""
        if self.used is None or self.allowed is None:
            return None
        return 100 * (self.allowed - self.used) / self.allowed

    def __str__(self) -> str:
        """The figure and its limit, for people."""
        used = "an unknown number of" if self.used is None else f"{self.used:,}"
        allowed = "unlimited" if self.allowed is None else f"{self.allowed:,} are allowed"
        return f"{self.table or 'the model'}: {used} {self.limit.value}, {allowed}"


@dataclass(frozen=True)
class SkuFit:
    """All figures of a model against one capacity."""

    sku: Sku
    uses: tuple[Use, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        verdicts = {use.verdict for use in self.uses}
        return next(verdict for verdict in (Verdict.OVER, Verdict.UNSURE, Verdict.FITS) if verdict in verdicts)

    @property
    def tightest(self) -> Use | None:
        """The use with the least headroom; None when no limit has a figure."""
        limited = [(use.headroom_percent, use) for use in self.uses if use.headroom_percent is not None]
        return min(limited, key=lambda one: one[0])[1] if limited else None

    @property
    def days_left(self) -> float | None:
        """Days until the first limit is reached at the present growth; None when none will be."""
        return min((use.days_left for use in self.uses if use.days_left is not None), default=None)


def fit(sku: Sku, tables: Sequence[TableFigures]) -> SkuFit:
    """Compare the tables of one model with the capacity."""
    grown = [table.growth.bytes for table in tables if table.growth and table.growth.bytes is not None]
    a_day = sum(grown) if len(grown) == len(tables) else None
    model = _use(Limit.MODEL_BYTES, None, sum(table.bytes for table in tables), sku.model_bytes, a_day)
    return SkuFit(sku, (*(use for table in tables for use in _table_uses(sku, table)), model))


def fit_all(tables: Sequence[TableFigures]) -> tuple[SkuFit, ...]:
    """Compare the tables of one model with every capacity, the smallest first."""
    return tuple(fit(sku, tables) for sku in SKUS)


def smallest_of(fits: Sequence[SkuFit]) -> Sku | None:
    """Return the first of these capacities that all figures surely fit into; None when none does."""
    return next((found.sku for found in fits if found.verdict is Verdict.FITS), None)


def _table_uses(sku: Sku, table: TableFigures) -> Iterator[Use]:
    files_a_day, rows_a_day = (table.growth.files, table.growth.rows) if table.growth else (None, None)
    groups_a_day = None
    if files_a_day is not None and table.row_groups is not None and table.files:
        # The log doesn't tell row groups of files that are gone: new files are taken to have as many as those here.
        groups_a_day = files_a_day * table.row_groups / table.files
    yield _use(Limit.FILES, table.table, table.files, sku.files, files_a_day)
    yield _use(Limit.ROW_GROUPS, table.table, table.row_groups, sku.row_groups, groups_a_day)
    rows = _use(Limit.ROWS, table.table, table.rows, sku.rows, rows_a_day)
    # Whether rows that a deletion vector hides count is not documented.
    hidden = rows.verdict is Verdict.FITS and (table.stored_rows or 0) > sku.rows
    yield replace(rows, verdict=Verdict.UNSURE) if hidden else rows


def _use(limit: Limit, table: str | None, used: int | None, allowed: int | None, a_day: float | None) -> Use:
    if allowed is None:
        return Use(limit, table, used, None, Verdict.FITS)
    if used is None:
        return Use(limit, table, None, allowed, Verdict.UNSURE)
    if used > allowed:
        return Use(limit, table, used, allowed, Verdict.OVER, days_left=0.0)
    days = (allowed - used) / a_day if a_day is not None and a_day > 0 else None
    return Use(limit, table, used, allowed, Verdict.FITS, days)


@dataclass(frozen=True)
class Fitting:
    """Figures of one table, and how they fit into each capacity, the smallest first, as if a model had no other."""

    figures: TableFigures
    fits: tuple[SkuFit, ...]

    @classmethod
    def of(cls, figures: TableFigures) -> Fitting:
        """Compare these figures with every capacity."""
        return cls(figures, fit_all([figures]))

    @property
    def smallest(self) -> Sku | None:
        """The smallest capacity that all figures surely fit into; None when there is none."""
        return smallest_of(self.fits)

    def into(self, sku: Sku) -> SkuFit:
        """Return the comparison with one capacity."""
        return next(one for one in self.fits if one.sku == sku)


@dataclass(frozen=True)
class Guardrails:
    """The table as it is, and as its mirror will be once Fabric has compacted it (None when rows are not known)."""

    table: Fitting
    mirror: Fitting | None
