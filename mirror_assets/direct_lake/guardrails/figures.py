"""Measure what Direct Lake limits: of a table as it is, and of its mirror in Fabric as predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import GB
from mirror_assets.source.replay import Snapshot


@dataclass(frozen=True)
class TableFigures:
    """The live files of one table at one version.

    `rows` are those that the table shows, `hidden_rows` those that deletion vectors hide, on top of them. `growth` is
    None where the log is too short to tell.
    """

    table: str
    files: int
    row_groups: int
    rows: int
    hidden_rows: int
    bytes: int
    growth: Growth | None = None

    @property
    def stored_rows(self) -> int:
        """Rows in the files, hidden ones included."""
        return self.rows + self.hidden_rows


def measure(table: str, snapshot: Snapshot, footers: Footers, growth: Growth | None = None) -> TableFigures:
    """Measure a version; `footers` are those of its files."""
    hidden = sum(file.vector.rows for file in snapshot.files if file.vector)
    return TableFigures(
        table=table,
        files=len(snapshot.files),
        row_groups=len(footers.row_groups),
        rows=sum(file.rows for file in footers.files) - hidden,
        hidden_rows=hidden,
        bytes=sum(file.bytes for file in snapshot.files),
        growth=growth,
    )


@dataclass(frozen=True)
class _Sizing:
    """How Fabric cuts mirrors of up to `table_bytes` (None: of any size)."""

    table_bytes: int | None
    rows_per_group: int
    rows_per_file: int


# Microsoft, "Cross-workload table maintenance and optimization", 2026-02-12. Later versions of the page leave the sizes
# out: they are a model, not a promise.
_SIZINGS = (
    _Sizing(10 * GB, 2_000_000, 10_000_000),
    _Sizing(2_560 * GB, 4_000_000, 60_000_000),
    _Sizing(None, 8_000_000, 80_000_000),
)


def predicted_mirror(source: TableFigures) -> TableFigures:
    """Predict the source's mirror once Fabric has compacted it.

    Fabric alone decides on a mirror's files: nobody can compact them (reference `direct-lake` §1.4). The mirror's bytes
    are taken to be those of the source's files per row. Until it is compacted, each merge adds files: one every 15 s
    are 1,000 in 4.2 hours.
    """
    size = round(source.bytes * source.rows / source.stored_rows) if source.stored_rows else 0
    sizing = next(one for one in _SIZINGS if one.table_bytes is None or size <= one.table_bytes)
    full_files, rest = divmod(source.rows, sizing.rows_per_file)
    return TableFigures(
        table=f"{source.table} (mirror, predicted)",
        files=ceil(source.rows / sizing.rows_per_file),
        row_groups=full_files * ceil(sizing.rows_per_file / sizing.rows_per_group) + ceil(rest / sizing.rows_per_group),
        rows=source.rows,
        hidden_rows=0,
        bytes=size,
        growth=_mirror_growth(source.growth, sizing),
    )


def _mirror_growth(growth: Growth | None, sizing: _Sizing) -> Growth | None:
    if growth is None or growth.rows is None:
        return None
    return replace(growth, files=growth.rows / sizing.rows_per_file)
