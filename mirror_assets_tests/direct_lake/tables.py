"""Reports of real tables."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.direct_lake.footer_reader import FooterReader
from mirror_assets.direct_lake.footers import Footers
from mirror_assets.direct_lake.layout import LayoutReport, layout_report
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import Snapshot


def seen(path: Path) -> tuple[Snapshot, Footers]:
    """A table's newest version, and the footers of its files."""
    log = DeltaLog(str(path))
    snapshot = log.snapshot()
    return snapshot, FooterReader(str(path), log.files).read(snapshot.files)


def report(path: Path) -> LayoutReport:
    """The layout of a table's newest version."""
    return layout_report(*seen(path))
