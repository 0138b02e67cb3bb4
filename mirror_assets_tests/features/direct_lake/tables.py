"""Reports of real tables."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.features.direct_lake.footer_reader import FooterReader
from mirror_assets.features.direct_lake.layout import LayoutReport, layout_report
from mirror_assets.source.log import DeltaLog


def report(path: Path) -> LayoutReport:
    """Return the layout of a table's newest version."""
    log = DeltaLog(str(path))
    snapshot = log.snapshot()
    return layout_report(snapshot, FooterReader(str(path), log.files).read(snapshot.files))
