"""Where a series of kills happens: a landing zone, the source that it mirrors, and how runs are started there."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.quick_jvm import OPTIONS
from mirror_assets_tests.worlds.eyes import Eyes
from mirror_assets_tests.worlds.kills.folder_watch import FolderWatch
from mirror_assets_tests.worlds.kills.points import Point, Side
from mirror_assets_tests.worlds.kills.process import Run
from mirror_assets_tests.worlds.kills.source import Orders

LAUNCHER = "mirror_assets_tests.worlds.kills.victim"
Arrival = Callable[[], object]
# The first load, 60 rows in three files, lands in two chunks.
_SLICES, _PART_ROWS = "{max_commits: 2, max_rows: 45}", 20
_SPARK = {
    "spark.master": "local[1]",
    "spark.driver.memory": "1g",
    # A scan of several small files is several partitions, as one of large files is.
    "spark.sql.files.maxPartitionBytes": "4MB",
    "spark.driver.extraJavaOptions": "${JAVA_OPTIONS}",
}


@dataclass
class Place(ABC):
    """A landing zone in which publishers are killed; `root` has its source, mirror, mirror.yaml and what runs leave."""

    root: Path
    eyes: Eyes = field(default_factory=Eyes, kw_only=True)

    @property
    def source(self) -> Orders:
        return Orders(self.root / "lake" / "orders")

    @property
    def config_file(self) -> Path:
        return self.root / "mirror.yaml"

    @property
    def replicator(self) -> LocalReplicator:
        """The stand-in, on the series' landing zone."""
        return LocalReplicator(self.store, self.root / "mirror")

    def configure(self, zone: str, spark: Mapping[str, str] = MappingProxyType({})) -> None:
        """Make the source, and write mirror.yaml. What differs from run to run comes from the environment."""
        self.source.path.parent.mkdir(parents=True)
        self.source.create()
        settings = "".join(f'    {name}: "{value}"\n' for name, value in {**_SPARK, **spark}.items())
        self.config_file.write_text(
            f"landing_zone: {zone}\nmirror: {{path: ./mirror}}\n"
            f"defaults:\n  slices: {_SLICES}\n  files: {{target_rows: {_PART_ROWS}}}\n"
            f"spark:\n  settings:\n{settings}"
            f"tables:\n  {TABLE}:\n    source: ./lake/orders\n    keys: [id]\n"
        )

    def environment(self) -> dict[str, str]:
        """What a run needs; its scraps stay in the series' folder, for kill -9 leaves them."""
        scraps = self.root / "scraps"
        scraps.mkdir(exist_ok=True)
        places = dict.fromkeys(("TMPDIR", "SPARK_LOCAL_DIRS"), str(scraps))
        return {**places, "JAVA_OPTIONS": f"{OPTIONS} -Djava.io.tmpdir={scraps}"}

    @property
    @abstractmethod
    def store(self) -> Store:
        """The landing zone, for whoever is not killed."""

    @property
    @abstractmethod
    def sides(self) -> Sequence[Side]:
        """On which sides of any request a kill can be."""

    @abstractmethod
    def start(self, name: str, at: Point | None = None) -> Run:
        """Start a run under this name, to be killed at the point."""

    @abstractmethod
    def sent(self, name: str) -> Sequence[str]:
        """The requests that the newest run with this name has sent."""

    @abstractmethod
    def attempts(self) -> frozenset[str]:
        """The attempts that anybody has begun to stage, as long as they are there."""

    def late(self) -> Sequence[Arrival]:
        """The requests that were on their way when their senders were killed, to let each arrive; told once."""
        return ()

    def settle(self) -> None:  # noqa: B027 on a disk there is nothing to forget
        """Forget the points of runs that have ended."""


@dataclass
class OnDisk(Place):
    """A landing zone on this machine's disk: runs note what they ask of it, and kill themselves.

    No request arrives late: a system call has had its effect, or never will.
    """

    sides = (Side.BEFORE, Side.AFTER)

    @classmethod
    @contextmanager
    def opened(cls, root: Path) -> Iterator[OnDisk]:
        """An empty landing zone, watched as long as the block lasts."""
        place = cls(root)
        place.configure("{path: ./landing}")
        folder = root / "landing" / TABLE.folder
        folder.mkdir(parents=True)
        with FolderWatch(folder, place.eyes):
            yield place

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.root / "landing")

    def start(self, name: str, at: Point | None = None, *, redo: bool = True) -> Run:
        """Start a run through the launcher; a control does not `redo` what a killed one committed."""
        trace = self._trace(name)
        trace.unlink(missing_ok=True)
        options = [*(("--at", at.name) if at else ()), *(() if redo else ("--without-redo",))]
        run = ("--", "run", "--config", str(self.config_file))
        return Run(name, [sys.executable, "-m", LAUNCHER, str(trace), *options, *run], self.environment())

    def sent(self, name: str) -> Sequence[str]:
        trace = self._trace(name)
        return trace.read_text().splitlines() if trace.exists() else []

    def attempts(self) -> frozenset[str]:
        return frozenset(info.name for info in self.store.list(TABLE.scratch))

    def _trace(self, name: str) -> Path:
        return self.root / f"{name}.trace"
