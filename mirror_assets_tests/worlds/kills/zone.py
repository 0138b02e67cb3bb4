"""A lake of three tables, its landing zone, and the mirrors on it that are killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mirror_assets.landing.names import TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore
from mirror_assets_tests.worlds.planted.lake import Lake

PROJECT = Path(__file__).parents[3]
PROGRAM = Path(sys.executable).with_name("mirror-assets")
_TABLES = 3


@dataclass(frozen=True)
class Zone:
    """A lake, its landing zone and the mirror.yaml between them."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Zone:
        """Write the tables and the configuration; its name is that of the folder."""
        made = cls(folder)
        lines = "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\ntables:\n"
        for table in made.tables:
            made.lake.make(table.table)
            lines += f"  {table}: {{source: ./lake/{table.table}, keys: [id]}}\n"
        made.config.write_text(lines, encoding="utf-8")
        return made

    @property
    def config(self) -> Path:
        return self.folder / f"{self.folder.name}.yaml"

    @property
    def lake(self) -> Lake:
        return Lake(self.folder / "lake")

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.folder / "landing")

    @property
    def tables(self) -> list[TableName]:
        return [TableName(self.folder.name, f"t{number}") for number in range(_TABLES)]

    def commit(self) -> None:
        for table in self.tables:
            self.lake.update(table.table)

    def waiting(self) -> list[str]:
        """Return the tables whose newest version has not landed."""
        found = ((table, drive(read_manifest(table), self.store)) for table in self.tables)
        return [
            str(table)
            for table, current in found
            if current is None or current.manifest.covered < self.lake.open(table.table).version()
        ]

    def residents(self, home: Path) -> list[int]:
        """Return the processes that mirror the zone for a Dagster instance and have a JVM, and those JVMs."""
        marks = {f"MIRROR_CONFIG={self.config}".encode(), f"DAGSTER_HOME={home}".encode()}

        def owns(process: Path) -> bool:
            return marks <= set((process / "environ").read_bytes().split(b"\0"))

        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "comm").read_text().strip() == "java" and owns(process):
                    parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
                    found += [int(process.name), *([int(parent)] if owns(process.with_name(parent)) else [])]
        return found

    def kill_residents(self, home: Path) -> None:
        """Kill these processes by -9, as the kernel does when memory runs out."""
        for pid in self.residents(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def problems(self) -> str:
        """Compare the mirror with its sources, and check every landing file; return the outputs of what fails."""
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        environment.pop("DAGSTER_HOME", None)
        found = ""
        for command in ("replicate", "reconcile", "check"):
            ended = subprocess.run(
                [PROGRAM, command, "--config", self.config],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode:
                found += f"{command}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        return found


def until_landed(zones: Iterable[Zone], limit: float, meanwhile: Callable[[], None]) -> float:
    """Wait until everything has landed; return the seconds. Raises TimeoutError."""
    began, watched = time.monotonic(), tuple(zones)
    while waiting := [table for zone in watched for table in zone.waiting()]:
        if time.monotonic() - began > limit:
            message = f"{', '.join(waiting)} have not landed in {limit:.0f} s"
            raise TimeoutError(message)
        meanwhile()
        time.sleep(0.1)
    return time.monotonic() - began


def made_home(folder: Path, settings: str = "") -> Path:
    """Return DAGSTER_HOME with its databases: two processes that make the same SQLite files at once would collide."""
    if not folder.exists():
        folder.mkdir()
        shutil.copy(PROJECT / "dagster.yaml", folder)
        with (folder / "dagster.yaml").open("a") as file:
            file.write(settings)
        with dg.DagsterInstance.from_config(str(folder)) as instance:
            instance.get_runs_count()
    return folder
