"""What a table's mirror in Fabric will measure (reference `direct-lake` §1.4).

Fabric alone decides on a mirror's files: nobody can compact them, but they can be predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import GB

SOURCE = "Microsoft, Cross-workload table maintenance and optimization"
# Later versions of the page leave the sizes out: they are a model, not a promise.
SOURCE_DATE = "2026-02-12"


@dataclass(frozen=True)
class Sizing:
    """How Fabric cuts tables of up to `table_bytes` (None: of any size)."""

    table_bytes: int | None
    rows_per_group: int
    rows_per_file: int


SIZINGS = (
    Sizing(10 * GB, 2_000_000, 10_000_000),
    Sizing(2_560 * GB, 4_000_000, 60_000_000),
    Sizing(None, 8_000_000, 80_000_000),
)


def predicted_mirror(source: TableFigures) -> TableFigures | None:
    """The figures of the source's mirror once Fabric has compacted it; None when the source's rows are not known.

    Its bytes are taken to be those of the source's files per row. Until it is compacted, each merge adds files: one
    every 15 s are 1,000 in 4.2 hours.
    """
    if source.rows is None or source.stored_rows is None:
        return None
    size = round(source.bytes * source.rows / source.stored_rows) if source.stored_rows else 0
    sizing = next(s for s in SIZINGS if s.table_bytes is None or size <= s.table_bytes)
    return TableFigures(
        table=f"{source.table} (mirror, predicted)",
        files=ceil(source.rows / sizing.rows_per_file),
        row_groups=_groups(source.rows, sizing),
        rows=source.rows,
        hidden_rows=0,
        bytes=size,
        growth=_growth(source.growth, sizing),
    )


def _groups(rows: int, sizing: Sizing) -> int:
    """Row groups of full files, and those of the last one."""
    full, rest = divmod(rows, sizing.rows_per_file)
    return full * ceil(sizing.rows_per_file / sizing.rows_per_group) + ceil(rest / sizing.rows_per_group)


def _growth(growth: Growth | None, sizing: Sizing) -> Growth | None:
    if growth is None or growth.rows is None:
        return None
    return replace(growth, files=growth.rows / sizing.rows_per_file)
