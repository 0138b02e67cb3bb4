"""A table, and its mirror as it will be, against the limits of every capacity."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.fit import SkuFit, fit_all, smallest_of
from mirror_assets.direct_lake.guardrails.skus import Sku


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
