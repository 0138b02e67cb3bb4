"""What the stand-in says of a table, over what any replicator does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mirror_assets.landing.format import Manifest
from mirror_assets.monitoring import MonitoredTable


@dataclass(frozen=True)
class TableStatus(MonitoredTable):
    """One table of the local stand-in.

    `applied_number` is 0 before the first landing file; `next_number` is the one it waits for. Files wait behind a gap,
    or from a bad one on.
    """

    applied_number: int
    mirror_rows: int
    next_number: int
    mirror_path: Path

    @property
    def location(self) -> str:
        """The mirror table's folder."""
        return str(self.mirror_path)

    def has_applied(self, manifest: Manifest) -> bool:
        """Whether the last committed landing file is applied."""
        return self.applied_number >= manifest.next_number - 1
