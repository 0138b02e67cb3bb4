"""Measure what Direct Lake limits: of a table as it is, and of its mirror in Fabric as predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import GB
from mirror_assets.direct_lake.table.values import Snapshot
from mirror_assets.direct_lake.table_layout import stored_rows


@dataclass(frozen=True)
class TableFigures:
    """The live files of one table at one version.

    `row_groups` is None where footers were not read. `rows` are those that the table shows, `hidden_rows` those that
    deletion vectors hide, on top of them; both are None when a file has neither statistics nor a footer that was read.
    `growth` is None where it was not measured.
    """

    table: str
    files: int
    row_groups: int | None
    rows: int | None
    hidden_rows: int | None
    bytes: int
    growth: Growth | None = None

    @property
    def stored_rows(self) -> int | None:
        """Rows in the files, hidden ones included."""
        return None if self.rows is None or self.hidden_rows is None else self.rows + self.hidden_rows


def measure(
    table: str, snapshot: Snapshot, footers: Footers | None = None, growth: Growth | None = None
) -> TableFigures:
    """Measure a version; `footers` are those of its files."""
    stored = stored_rows(snapshot.files) if footers is None else sum(file.rows for file in footers.files)
    hidden = sum(file.vector.rows for file in snapshot.files if file.vector)
    return TableFigures(
        table=table,
        files=len(snapshot.files),
        row_groups=None if footers is None else len(footers.row_groups),
        rows=None if stored is None else stored - hidden,
        hidden_rows=None if stored is None else hidden,
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


def predicted_mirror(source: TableFigures) -> TableFigures | None:
    """Predict the source's mirror once Fabric has compacted it; None when the source's rows are not known.

    Fabric alone decides on a mirror's files: nobody can compact them (reference `direct-lake` §1.4). The mirror's bytes
    are taken to be those of the source's files per row. Until it is compacted, each merge adds files: one every 15 s
    are 1,000 in 4.2 hours.
    """
    if source.rows is None or source.stored_rows is None:
        return None
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
