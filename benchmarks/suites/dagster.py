"""Small commits in many tables, landed by the real daemon, code server and webserver, from commit to landed.

Beside them `mirror-assets run` in a new process, and the same feeds dumped by one warm Spark session in a plain loop.
The stand-in for the replicator is off: beside Fabric it has no work, and here it would share the cores.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.bench import Bench
from benchmarks.dev_server import DevServer, Storage, dagster_home, dev_server
from benchmarks.landed import seconds_to_land
from benchmarks.many import CHANGED, ManyTables
from benchmarks.meter import Cost
from benchmarks.postgres import PostgresMissing
from benchmarks.processes import MARK, ProcessWatch, Role, Usage
from benchmarks.result import Case, Goal, Outcome
from mirror_assets_tests.delta_reader import read_changes

_LOOP, _RUN = "plain Spark loop", "mirror-assets run, new process"
_STAND_IN = "replicator"
_LIMIT_SECONDS = 1_200
# Commits come at any moment between two ticks, and a commit alone behind a quiet time.
_SPREAD_SECONDS = 15
_SETTLE_SECONDS, _IDLE_SECONDS = 45, 60
_MEBI, _GIBI = 1 << 20, 1 << 30


@dataclass(frozen=True)
class _Served:
    """What one server did: rounds with a commit in each table, commits of one table, and nothing at all."""

    tables: int
    storage: Storage
    server: DevServer
    first: float
    rounds: tuple[Usage, ...]
    together: tuple[float, ...]
    alone: tuple[float, ...]
    idle: tuple[Usage, Usage]

    @property
    def way(self) -> str:
        """Its name among the ways."""
        return f"Dagster, {self.storage.value}"

    @property
    def idle_share(self) -> float:
        """Percent of a core, the larger of before the first commit and behind the last."""
        return max(100 * usage.cpu_seconds / usage.seconds for usage in self.idle)

    def lines(self) -> Iterator[str]:
        """What no case holds."""
        slices = sum(usage.cpu_seconds for usage in self.rounds) / (len(self.rounds) * self.tables)
        largest = max(self.rounds, key=lambda usage: usage.bytes)
        yield f"  {self.tables} tables, {self.way}: loaded in {self.server.loaded_seconds:.1f} s, daemons healthy in"
        yield f"    {self.server.started_seconds:.1f} s; all tables' first commit landed in {self.first:.1f} s"
        yield f"    commit to landed, all tables at once: {_spread(self.together)}"
        yield f"    commit to landed, one table: {_spread(self.alone)}"
        yield f"    CPU {slices:.2f} s a slice ({_shares(self.rounds)})"
        yield f"    memory at its peak {_memory(largest)}"
        for when, usage in zip(("before the first commit", "behind the last"), self.idle, strict=True):
            share = 100 * usage.cpu_seconds / usage.seconds
            yield f"    idle {when}: {share:.1f} % of a core ({_shares([usage])}), {_memory(usage)}"


def run(bench: Bench) -> Outcome:
    """Measure each number of tables, with each storage."""
    cases, served, notes = [], list[_Served](), list[str]()
    for tables in bench.size((12,), (12, 100, 500)):
        lake = ManyTables.make(bench.folder / f"{tables}", tables)
        ways = _without_dagster(bench, lake)
        for storage in Storage if bench.is_full else (Storage.SQLITE,):
            try:
                one = _serve(bench, lake.copied(bench.folder / f"{tables}-{storage.value}"), storage)
            except (PostgresMissing, TimeoutError) as error:
                notes.append(f"  {tables} tables, {storage.value}: not measured: {error}")
                continue
            served.append(one)
            ways[one.way] = tuple(map(_cost, one.rounds))
            print(*one.lines(), sep="\n", flush=True)
        cases.append(Case(f"{tables} tables, {CHANGED} changed rows in each", ways, _LOOP, tables))
    notes += [line for one in served for line in one.lines()]
    return Outcome("dagster", cases, [*_goals(cases), *(goal for one in served for goal in _goals_of(one))], notes)


def _goals(cases: Sequence[Case]) -> Iterator[Goal]:
    for case in cases:
        if case.size == 12:
            yield Goal(f"12 tables, {_RUN}", case.seconds(_RUN), 15, "s")
        for way in case.ways.keys() - {_LOOP, _RUN}:
            if case.size == 100:
                yield Goal(f"100 tables, {way}", case.seconds(way), 60, "s")


def _goals_of(one: _Served) -> Iterator[Goal]:
    name = f"{one.tables} tables, {one.way}"
    yield Goal(f"{name}: a commit alone, median", median(one.alone), 3, "s")
    yield Goal(f"{name}: a commit alone, 95th percentile", _percentile(one.alone), 6, "s")
    if one.tables == 100:
        # One driver, with the memory that users' sessions have by default, and 1 GiB.
        yield Goal(f"{name}: memory, all pending", max(usage.bytes for usage in one.rounds) / _GIBI, 4, "GiB")
    if one.tables == 500:
        yield Goal(f"{name}: idle", one.idle_share, 3, "% of a core")
        yield Goal(f"{name}: idle", one.idle[0].bytes / _GIBI, 1, "GiB")


def _without_dagster(bench: Bench, lake: ManyTables) -> dict[str, tuple[Cost, ...]]:
    """The plain loop and `mirror-assets run`, in turns over the same commits; the first load is nobody's."""
    _run_alone(lake)
    loops, runs = [], []
    for turn in range(1 + bench.size(3, 10)):
        version = lake.commit()
        dump = lake.folder / f"dump-{turn}"
        loops.append(bench.meter.measured(lambda version=version, dump=dump: _loop(bench, lake, version, dump)))  # type: ignore[misc]
        runs.append(_cost(_run_alone(lake)))
        taken = f"the loop took {loops[-1].seconds:.1f} s, the run {runs[-1].seconds:.1f} s"
        print(f"  {len(lake.names)} tables, turn {turn}: {taken}", flush=True)
    # The first turn warms the loop's session.
    return {_LOOP: tuple(loops[1:]), _RUN: tuple(runs[1:])}


def _loop(bench: Bench, lake: ManyTables, version: int, folder: Path) -> None:
    for name in lake.names:
        feed = read_changes(bench.spark, str(lake.source(name)), version, version)
        feed.write.parquet(str(folder / name))


def _run_alone(lake: ManyTables) -> Usage:
    """`mirror-assets run` in a process of its own."""
    mark = uuid.uuid4().hex
    program = Path(sys.executable).parent / "mirror-assets"
    with ProcessWatch(mark) as watch:
        used = watch.begin()
        subprocess.run(
            [program, "run", "--config", lake.config],
            check=True,
            env={**os.environ, MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return used()


def _serve(bench: Bench, lake: ManyTables, storage: Storage) -> _Served:
    """What the server does with the lake, whose tables have landed."""
    with (
        dagster_home(lake.folder / "home", lake.config, storage) as home,
        dev_server(home) as server,
        ProcessWatch(home.mark) as watch,
    ):
        server.stop_sensor(_STAND_IN)
        before = _idle(watch)
        first = max(_land_all(lake))
        rounds, together = [], list[float]()
        for turn in range(bench.size(3, 10)):
            time.sleep(_pause(turn))
            used = watch.begin()
            landed = _land_all(lake)
            rounds.append(used())
            together += landed
            # A round may take long: what it found is not to be lost with the rest.
            print(
                f"  {len(lake.names)} tables, {storage.value}: round {turn} landed in {max(landed):.1f} s", flush=True
            )
        alone = [_land_one(lake, turn) for turn in range(bench.size(5, 30))]
        idle = (before, _idle(watch))
    return _Served(len(lake.names), storage, server, first, tuple(rounds), tuple(together), tuple(alone), idle)


def _land_all(lake: ManyTables) -> list[float]:
    """Seconds from commit to landed, with a commit in each table at once."""
    return list(seconds_to_land(lake, lake.names, lake.commit(), _LIMIT_SECONDS).values())


def _land_one(lake: ManyTables, turn: int) -> float:
    """The same, with a commit in one table behind a quiet time."""
    time.sleep(_pause(turn))
    (name, *_) = lake.names
    (seconds,) = seconds_to_land(lake, [name], lake.commit_one(name), _LIMIT_SECONDS).values()
    return seconds


def _pause(turn: int) -> float:
    """Seconds to wait, at least a few; they go evenly over the time between two ticks, in no order."""
    return 3 + (turn * 0.618) % 1 * _SPREAD_SECONDS


def _idle(watch: ProcessWatch) -> Usage:
    """What is used while no table has a commit."""
    time.sleep(_SETTLE_SECONDS)
    used = watch.begin()
    time.sleep(_IDLE_SECONDS)
    return used()


def _cost(usage: Usage) -> Cost:
    """As the cost of a way; what Spark reads and shuffles is not known from outside."""
    jvm = usage.peak.get(Role.JVM, 0)
    return Cost(usage.seconds, usage.cpu_seconds, 0, 0, jvm, usage.bytes - jvm)


def _percentile(seconds: Sequence[float]) -> float:
    """The 95th: no more than one of twenty takes longer."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]


def _spread(seconds: Sequence[float]) -> str:
    return (
        f"{median(seconds):.2f} s median, {_percentile(seconds):.2f} s 95th percentile, {max(seconds):.2f} s at most, "
        f"of {len(seconds)}"
    )


def _shares(usages: Sequence[Usage]) -> str:
    """CPU seconds by role, most first."""
    total = {role: sum(usage.cpu.get(role, 0) for usage in usages) for role in Role}
    told = sorted(((seconds, role.value) for role, seconds in total.items() if seconds >= 0.05), reverse=True)
    return ", ".join(f"{role} {seconds:.1f} s" for seconds, role in told)


def _memory(usage: Usage) -> str:
    parts = sorted(((size, role.value) for role, size in usage.peak.items()), reverse=True)
    return f"{usage.bytes / _MEBI:,.0f} MiB ({', '.join(f'{role} {size / _MEBI:,.0f}' for size, role in parts)})"
