"""A table, and its mirror as it will be, against the limits of every capacity."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.reader import FooterReader
from mirror_assets.direct_lake.guardrails.figures import TableFigures, measure
from mirror_assets.direct_lake.guardrails.fit import SkuFit, Verdict, fit_all
from mirror_assets.direct_lake.guardrails.growth import growth
from mirror_assets.direct_lake.guardrails.mirror import predicted_mirror
from mirror_assets.direct_lake.guardrails.skus import Sku
from mirror_assets.direct_lake.guardrails.window import recent_window
from mirror_assets.direct_lake.table.log import TableLog

_DAY_MS = 86_400_000


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
        return next((one.sku for one in self.fits if one.verdict is Verdict.FITS), None)

    def into(self, sku: Sku) -> SkuFit:
        """The figures against one capacity."""
        return next(one for one in self.fits if one.sku == sku)


@dataclass(frozen=True)
class Guardrails:
    """The table as it is, and as its mirror will be once Fabric has compacted it (None when rows are not known)."""

    table: Fitting
    mirror: Fitting | None


def guardrails_of(name: str, log: TableLog, footers: Footers, now: float, growth_days: float) -> Guardrails:
    """The guardrails of the newest version; `footers` are those of its files. `now`: seconds since 1970."""
    now_ms = round(now * 1000)
    window = recent_window(log, now_ms - round(growth_days * _DAY_MS), now_ms)
    figures = measure(name, log.snapshot(), footers, growth(window))
    mirror = predicted_mirror(figures)
    return Guardrails(Fitting.of(figures), None if mirror is None else Fitting.of(mirror))


def table_guardrails(log: TableLog, reader: FooterReader, now: float, *, name: str, growth_days: float) -> Guardrails:
    """The guardrails alone, without the rest of a report: the footers' dictionaries need not be looked at."""
    return guardrails_of(name, log, reader.read(log.snapshot().files), now, growth_days)
