"""Tables against a capacity's limits (reference `direct-lake` §1.1, §1.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
        limited = [
            (use.headroom_percent, index) for index, use in enumerate(self.uses) if use.headroom_percent is not None
        ]
        return self.uses[min(limited)[1]] if limited else None

    @property
    def days_left(self) -> float | None:
        """Days until the first limit is reached at the present growth; None when none will be."""
        return min((use.days_left for use in self.uses if use.days_left is not None), default=None)


def fit(sku: Sku, tables: Sequence[TableFigures]) -> SkuFit:
    """The tables of one model against the capacity."""
    uses = [use for table in tables for use in _table_uses(sku, table)]
    return SkuFit(sku, (*uses, _model_use(sku, tables)))


def fit_all(tables: Sequence[TableFigures]) -> tuple[SkuFit, ...]:
    """The tables of one model against every capacity, the smallest first."""
    return tuple(fit(sku, tables) for sku in SKUS)


def smallest_fit(tables: Sequence[TableFigures]) -> Sku | None:
    """The smallest capacity that all figures surely fit into; None when there is none."""
    return smallest_of(fit_all(tables))


def smallest_of(fits: Sequence[SkuFit]) -> Sku | None:
    """The first of these capacities, the smallest first, that all figures surely fit into; None when none does."""
    return next((found.sku for found in fits if found.verdict is Verdict.FITS), None)


def _table_uses(sku: Sku, table: TableFigures) -> Iterator[Use]:
    growth = table.growth
    files_a_day = growth.files if growth else None
    groups_a_day = None if files_a_day is None else _groups_a_day(table, files_a_day)
    yield _use(Limit.FILES, table.table, table.files, sku.files, files_a_day)
    yield _use(Limit.ROW_GROUPS, table.table, table.row_groups, sku.row_groups, groups_a_day)
    rows = _use(Limit.ROWS, table.table, table.rows, sku.rows, growth.rows if growth else None)
    # Whether rows that a deletion vector hides count is not documented.
    hidden = rows.verdict is Verdict.FITS and (table.stored_rows or 0) > sku.rows
    yield Use(rows.limit, rows.table, rows.used, rows.allowed, Verdict.UNSURE, rows.days_left) if hidden else rows


def _model_use(sku: Sku, tables: Sequence[TableFigures]) -> Use:
    grown = [table.growth.bytes for table in tables if table.growth and table.growth.bytes is not None]
    a_day = sum(grown) if len(grown) == len(tables) else None
    return _use(Limit.MODEL_BYTES, None, sum(table.bytes for table in tables), sku.model_bytes, a_day)


def _groups_a_day(table: TableFigures, files_a_day: float) -> float | None:
    """The log doesn't tell row groups of files that are gone, so new files are taken to have as many as those here."""
    return files_a_day * table.row_groups / table.files if table.row_groups is not None and table.files else None


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
        """That of these figures."""
        return cls(figures, fit_all([figures]))

    @property
    def smallest(self) -> Sku | None:
        """The smallest capacity that all figures surely fit into; None when there is none."""
        return smallest_of(self.fits)

    def into(self, sku: Sku) -> SkuFit:
        """The figures against one capacity."""
        return next(one for one in self.fits if one.sku == sku)


@dataclass(frozen=True)
class Guardrails:
    """The table as it is, and as its mirror will be once Fabric has compacted it (None when rows are not known)."""

    table: Fitting
    mirror: Fitting | None
