"""Reports of real tables."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.direct_lake.footers.facts import Footers
from mirror_assets.direct_lake.footers.footer_reader import FooterReader
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import Snapshot
from mirror_assets.direct_lake.table_layout import LayoutReport, layout_report


def seen(path: Path) -> tuple[Snapshot, Footers]:
    """A table's newest version, and the footers of its files."""
    log = TableLog(str(path))
    snapshot = log.snapshot()
    return snapshot, FooterReader(str(path), log.files).read(snapshot.files)


def report(path: Path) -> LayoutReport:
    """The layout of a table's newest version."""
    return layout_report(*seen(path))
