"""What of a table Direct Lake's limits are about, as it is, and how fast it grows."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.replay import Snapshot


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
