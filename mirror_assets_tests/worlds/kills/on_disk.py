"""A landing zone on this machine's disk: runs note what they ask of it, and kill themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mirror_assets.zones import LocalStore
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.eyes import Eyes
from mirror_assets_tests.worlds.kills.folder_watch import FolderWatch
from mirror_assets_tests.worlds.kills.place import Arrival, Ground
from mirror_assets_tests.worlds.kills.points import Point, Side
from mirror_assets_tests.worlds.kills.process import Run

_LAUNCHER = "mirror_assets_tests.worlds.kills.victim"


@dataclass
class OnDisk:
    """See Place."""

    ground: Ground
    eyes: Eyes = field(default_factory=Eyes)

    @classmethod
    @contextmanager
    def opened(cls, ground: Ground) -> Iterator[OnDisk]:
        """An empty landing zone, watched as long as the block lasts."""
        ground.configure("{path: ./landing}")
        place = cls(ground)
        folder = ground.root / "landing" / TABLE.folder
        folder.mkdir(parents=True)
        with FolderWatch(folder, place.eyes):
            yield place

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.ground.root / "landing")

    def start(self, name: str, at: Point | None = None, *, redo: bool = True) -> Run:
        """Start a run through the launcher; a control does not `redo` what a killed one committed."""
        trace = self._trace(name)
        trace.unlink(missing_ok=True)
        options = [*(("--at", at.name) if at else ()), *(() if redo else ("--without-redo",))]
        command = [sys.executable, "-m", _LAUNCHER, str(trace), *options]
        run = ("--", "run", "--config", str(self.ground.config_file))
        return Run(name, [*command, *run], self.ground.environment())

    @property
    def sides(self) -> Sequence[Side]:
        return (Side.BEFORE, Side.AFTER)

    def requests(self, name: str) -> int:
        return len(self._lines(name))

    def last_request(self, name: str) -> str:
        lines = self._lines(name)
        return lines[-1] if lines else "none"

    def attempts(self) -> frozenset[str]:
        return frozenset(info.name for info in self.store.list(TABLE.scratch))

    def late(self) -> Sequence[Arrival]:
        """None: a system call has had its effect, or never will."""
        return ()

    def settle(self) -> None:
        """Nothing to forget."""

    def _lines(self, name: str) -> list[str]:
        trace = self._trace(name)
        return trace.read_text().splitlines() if trace.exists() else []

    def _trace(self, name: str) -> Path:
        return self.ground.root / f"{name}.trace"
