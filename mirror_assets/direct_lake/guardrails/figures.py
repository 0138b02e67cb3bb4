"""What a table and its mirror measure, of what Direct Lake limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import GB
from mirror_assets.direct_lake.table.values import LiveFile, Snapshot


@dataclass(frozen=True)
class TableFigures:
    """The live files of one table at one version.

    `row_groups` is None where footers were not read. `rows` are those that the table shows, `hidden_rows` those that
    deletion vectors hide, on top of them; both are None when a file has neither statistics nor a footer that was read.
    `growth` is None where nobody looked at it.
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
    """The figures of a version; `footers` are those of its files."""
    stored = _stored(snapshot.files) if footers is None else sum(file.rows for file in footers.files)
    hidden = None if stored is None else sum(file.vector.rows for file in snapshot.files if file.vector)
    return TableFigures(
        table=table,
        files=len(snapshot.files),
        row_groups=None if footers is None else len(footers.row_groups),
        rows=None if stored is None or hidden is None else stored - hidden,
        hidden_rows=hidden,
        bytes=sum(file.bytes for file in snapshot.files),
        growth=growth,
    )


def _stored(files: tuple[LiveFile, ...]) -> int | None:
    """Rows by the log's statistics; None when a file has none."""
    rows = [file.rows for file in files if file.rows is not None]
    return sum(rows) if len(rows) == len(files) else None


SIZINGS_SOURCE = "Microsoft, Cross-workload table maintenance and optimization"
# Later versions of the page leave the sizes out: they are a model, not a promise.
SIZINGS_DATE = "2026-02-12"


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
