"""How far a table is: what tells whether it has moved on since something was noted about it."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Manifest
from mirror_assets.landing.rebuild import RebuildRecord


@dataclass(frozen=True, order=True)
class Position:
    """A table's life, and the generation that landed last in it; 0 before the first. It grows with whatever lands."""

    life: int
    generation: int

    def __str__(self) -> str:
        """`life-generation`."""
        return f"{self.life}-{self.generation}"


def position_of(manifest: Manifest | None, rebuild: RebuildRecord | None) -> Position:
    """The table's position by its manifest; without one, that of the newest life that began or ended without it."""
    if manifest is not None:
        return Position(manifest.life, manifest.generation)
    return Position(rebuild.life if rebuild else 0, 0)
