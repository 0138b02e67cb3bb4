"""The rows and values of a source that land: the condition `where`, and the expressions of computed columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror_assets.source.schema import LandedColumn


@dataclass(frozen=True)
class Projection:
    """A condition in Spark SQL, or empty for all rows; the computed columns; and the source's columns that both use.

    The condition and the expressions may have secrets.
    """

    where: str = field(default="", repr=False)
    computed: tuple[LandedColumn, ...] = ()
    uses: tuple[str, ...] = ()


ALL_ROWS = Projection()
