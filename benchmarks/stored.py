"""Stored ratios: one small JSON file for each machine and size in `benchmarks/results`, and what has left them.

A file says which machine it is of, but neither its name nor a path.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.curve import Curve, GrowthPoint
from benchmarks.result import Outcome, Spread

RESULTS = Path(__file__).parent / "results"
_GIBI = 1 << 30


class Machine(BaseModel):
    """What ratios depend on, beside this project: results of an equal machine are comparable, whatever its memory."""

    model_config = ConfigDict(frozen=True)

    cores: int
    cpu: str
    python: str
    java: str
    spark: str
    delta: str
    memory_gib: int = 0

    @classmethod
    def here(cls) -> Machine:
        """Return this machine."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(
            cores=len(os.sched_getaffinity(0)),
            cpu=_cpu(),
            python=platform.python_version(),
            java=_java(),
            spark=_version("pyspark"),
            delta=_version("delta-spark"),
            memory_gib=round(memory / _GIBI),
        )

    def __str__(self) -> str:
        return (
            f"{self.cores} cores, {self.cpu}, Python {self.python}, Java {self.java}, Spark {self.spark}, "
            f"Delta {self.delta}"
        )

    def file(self, size: str) -> Path:
        """Return where the results of such a machine are stored."""
        words = re.sub(r"\((?:R|TM)\)", "", f"{self}-{size}").lower()
        return RESULTS / f"{re.sub(r'[^a-z0-9.]+', '-', words)}.json"


class StoredSuite(BaseModel):
    """One suite's ratios by the names of their rows, and its curves."""

    model_config = ConfigDict(frozen=True)

    date: str
    revision: str
    ratios: dict[str, Spread]
    curves: dict[str, list[GrowthPoint]] = {}


class Stored(BaseModel):
    """A machine's results of one size."""

    model_config = ConfigDict(frozen=True)

    machine: Machine
    suites: dict[str, StoredSuite]

    def with_outcomes(self, outcomes: Mapping[str, Outcome], date: str, revision: str) -> Stored:
        """Return the results with those suites replaced; others stay."""
        new = {
            name: StoredSuite(date=date, revision=revision, ratios=one.ratios(), curves=_points(one.curves))
            for name, one in outcomes.items()
        }
        return Stored(machine=self.machine, suites={**self.suites, **new})

    def changes(self, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
        """Yield a line for each ratio that is new, or whose median is outside the stored range."""
        for name, outcome in outcomes.items():
            suite, ratios = self.suites.get(name), outcome.ratios()
            if ratios and suite is None:
                yield f"note: no ratios of suite {name} are stored for this machine"
                continue
            yield from (line for row, now in ratios.items() if suite and (line := _change(row, suite, now)))


def _change(row: str, suite: StoredSuite, now: Spread) -> str:
    before = suite.ratios.get(row)
    if before is None:
        return f"note: {row}: {now}, not stored yet"
    if before.low <= now.median <= before.high:
        return ""
    kind, how = ("warning", "slower") if now.median > before.high else ("note", "faster")
    return f"{kind}: {row}: {now} is {how} than the stored {before}, of {suite.date}"


def read_stored(file: Path) -> Stored | None:
    """Return the results in the file; None if there is none."""
    return Stored.model_validate_json(file.read_text(encoding="utf-8")) if file.exists() else None


def store(outcomes: Mapping[str, Outcome], machine: Machine, size: str) -> Path:
    """Replace the stored results of these suites on this machine; return their file."""
    file = machine.file(size)
    known = read_stored(file) or Stored(machine=machine, suites={})
    date = datetime.now(timezone.utc).date().isoformat()
    updated = known.with_outcomes(outcomes, date, _revision())
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{updated.model_dump_json(indent=1)}\n", encoding="utf-8")
    return file


def compared(outcomes: Mapping[str, Outcome], machine: Machine, size: str) -> list[str]:
    """Return the lines about ratios that left the stored range, or one that says that nothing is stored."""
    stored = read_stored(machine.file(size))
    if stored is None:
        return [f"Nothing is stored for this machine ({machine}): `make bench ARGS=--store` stores these results."]
    changes = list(stored.changes(outcomes))
    return changes or ["All ratios are within their stored ranges."]


def _points(curves: Sequence[Curve]) -> dict[str, list[GrowthPoint]]:
    return {curve.name: [GrowthPoint(**asdict(point)) for point in curve.points] for curve in curves}


def _revision() -> str:
    """Return the commit of this checkout, with `+` if files differ from it."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    done = subprocess.run([program, "-version"], check=False, capture_output=True, text=True)
    found = re.search(r'version "([^"]+)"', done.stderr)
    return found[1] if found else "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
