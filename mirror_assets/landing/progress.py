"""How far a table is: what tells whether it has moved on since something was noted about it."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.rebuild import RebuildRecord


@dataclass(frozen=True, order=True)
class Progress:
    """A table's epoch, and the generation that landed last in it; 0 before the first. It grows with whatever lands."""

    epoch: int
    generation: int

    def __str__(self) -> str:
        """`epoch-generation`."""
        return f"{self.epoch}-{self.generation}"


def progress_of(manifest: Manifest | None, rebuild: RebuildRecord | None) -> Progress:
    """The table's position by its manifest; without one, that of the newest epoch that began or ended without it."""
    if manifest is not None:
        return Progress(manifest.epoch, manifest.generation)
    return Progress(rebuild.epoch if rebuild else 0, 0)
