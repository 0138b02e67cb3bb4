"""Opens the places of a proof, each with a new source in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from mirror_assets.zones.onelake.onelake_zone import Staging
from mirror_assets_tests.worlds.kills.on_disk import OnDisk
from mirror_assets_tests.worlds.kills.on_onelake import OnOneLake
from mirror_assets_tests.worlds.kills.place import Ground, Place
from mirror_assets_tests.worlds.kills.points import DIRECT, ON_DISK, UPLOADED, Point
from mirror_assets_tests.worlds.onelake import LoopbackOneLake


class Where(Enum):
    """Where the landing zone is, and who writes the parts there."""

    DISK = "disk"
    UPLOAD = "upload"
    DIRECT = "direct"

    @property
    def points(self) -> tuple[Point, ...]:
        return {Where.DISK: ON_DISK, Where.UPLOAD: UPLOADED, Where.DIRECT: DIRECT}[self]

    def __str__(self) -> str:
        return "local disk" if self is Where.DISK else f"loopback OneLake, {self.value}"


@contextmanager
def opened(root: Path, where: Where, server: LoopbackOneLake | None = None) -> Iterator[Place]:
    """Open an empty landing zone with a new source in a new folder."""
    ground = Ground(root)
    ground.source.path.parent.mkdir(parents=True)
    ground.source.create()
    if where is Where.DISK or server is None:
        with OnDisk.opened(ground) as place:
            yield place
    else:
        with OnOneLake.opened(ground, server, Staging(where.value)) as place:
            yield place
