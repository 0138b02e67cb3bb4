"""The places of a proof: opened with a new source in a folder of their own, after a first run that nobody kills."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random

from mirror_assets.config import Staging
from mirror_assets_tests.kills.attack import Pace
from mirror_assets_tests.kills.jvm import QuickSpark
from mirror_assets_tests.kills.on_disk import OnDisk
from mirror_assets_tests.kills.on_onelake import OnOneLake
from mirror_assets_tests.kills.place import Ground, Place
from mirror_assets_tests.kills.points import DIRECT, ON_DISK, UPLOADED, Point
from mirror_assets_tests.kills.series import Series
from mirror_assets_tests.onelake import LoopbackOneLake


class Where(Enum):
    """Where the landing zone is, and who writes the parts there."""

    DISK = "disk"
    UPLOAD = "upload"
    DIRECT = "direct"

    @property
    def points(self) -> tuple[Point, ...]:
        """Every named point there."""
        return {Where.DISK: ON_DISK, Where.UPLOAD: UPLOADED, Where.DIRECT: DIRECT}[self]

    def __str__(self) -> str:
        return "local disk" if self is Where.DISK else f"loopback OneLake, {self.value}"


@dataclass(frozen=True)
class Field:
    """Where series are run: a folder for all that they leave, and how long an undisturbed run takes."""

    root: Path
    spark: QuickSpark
    pace: Pace

    @classmethod
    def prepared(cls, root: Path, tell: Callable[[str], object]) -> Field:
        """The field after a run that nobody kills, which tells its times and leaves its classes to the next."""
        spark = QuickSpark(root)
        with _ground(root / "undisturbed", spark) as ground, OnDisk.opened(ground) as place:
            series = Series(place, Random(0), tell)
            series.attack(None)
        return cls(root, spark, series.pace)

    @contextmanager
    def opened(self, name: str, where: Where, server: LoopbackOneLake | None = None) -> Iterator[Place]:
        """An empty landing zone and a new source."""
        with _ground(self.root / name, self.spark) as ground:
            if where is Where.DISK or server is None:
                with OnDisk.opened(ground) as place:
                    yield place
            else:
                with OnOneLake.opened(ground, server, Staging(where.value)) as place:
                    yield place


@contextmanager
def _ground(root: Path, spark: QuickSpark) -> Iterator[Ground]:
    ground = Ground(root, spark)
    ground.source.path.parent.mkdir(parents=True)
    ground.source.create()
    yield ground
