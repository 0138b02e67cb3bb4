"""What a table's age costs: a landing run, its check and a quiet tick, behind a short history and a long one. No Spark.

Seconds are of a disk, with everything made durable; requests are counted at the loopback OneLake.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Protocol
from unittest.mock import patch

from benchmarks.aged import TABLE, AgedTable, manifest_of
from benchmarks.bench import Bench
from benchmarks.result import Goal, Outcome
from mirror_assets.landing.names import SliceKey
from mirror_assets.pipeline.land_slice import publish_slice
from mirror_assets.verify.landed import file_continuity, incremental_continuity
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store

_ROUNDS = 5
_STAGED_AHEAD = 100
_COMMITS_AHEAD = 2 * _ROUNDS + _STAGED_AHEAD + 1


@dataclass(frozen=True)
class Figure:
    """What one piece of work cost: requests to OneLake, and seconds on disk."""

    context: str
    requests: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.context:34} {self.requests:7,.0f} requests {self.seconds * 1000:10,.1f} ms"


class Measure(Protocol):
    """The median of what `work` costs; `before` comes before each round and is not counted."""

    def __call__(self, context: Callable[[], object], before: Callable[[], object], rounds: int = _ROUNDS) -> float:
        """Measure it."""
        ...


def run(bench: Bench) -> Outcome:
    """Measure at both ages; the older must not cost more requests."""
    ages = bench.size((100, 1_000), (100, 10_000))
    found = {age: _measured(bench.folder / f"{age}", age) for age in ages}
    young, old = (found[age] for age in ages)
    notes = [line for age in ages for line in (f"{age:,} generations:", *(f"  {figure}" for figure in found[age]))]
    goals = [
        Goal(f"{after.context}: requests, old of young", after.requests / before.requests, 1.1)
        for before, after in zip(young, old, strict=True)
    ]
    return Outcome("age", notes=notes, goals=goals)


def _measured(folder: Path, age: int) -> list[Figure]:
    """Each work at this age, on OneLake and on disk."""
    table = AgedTable.make(folder, age, _COMMITS_AHEAD)
    with LoopbackOneLake(folder) as server, patch.dict(os.environ, server.environment()):
        item = server.new_item()
        _copy(table.disk, item)
        zone = f'onelake: {{url: "{item.url}", credential: client_secret, ca_bundle: "{server.ca}"}}'
        requested = _Works(table, loopback_store(server, item), zone, partial(_requests, server)).run()
    took = _Works(table, table.disk, "path: ./landing", _seconds).run()
    return [Figure(context, requested[context], took[context]) for context in requested]


@dataclass(frozen=True)
class _Works:
    """What is measured on one landing zone, which `zone` names in mirror.yaml."""

    table: AgedTable
    store: Store
    zone: str
    measure: Measure

    def run(self) -> dict[str, float]:
        """Each work's figure."""
        self._land(self._staged(1))
        self.store.delete(TABLE.landing_file(self.table.generations))
        self._check_all()
        slices: list[SliceKey] = []
        return {
            "landing run of a slice": self.measure(lambda: self._land(slices), lambda: self._stage(slices, 1)),
            "file_continuity of a landing run": self.measure(self._check_new, self._one_more),
            "file_continuity of everything": self.measure(self._check_all, _nothing, 2),
            "landing run of 100 staged slices": self.measure(
                lambda: self._land(slices), lambda: self._stage(slices, _STAGED_AHEAD), 1
            ),
            "quiet tick of the sensor": self._tick(),
        }

    def _tick(self) -> float:
        while manifest_of(self.store).covered < self.table.log.version:
            self._land(self._staged(1))
        tick = self.table.ticker(self.table.config(self.zone), self.table.instance())
        tick()  # a code server's first tick looks at everything
        return self.measure(tick, _nothing)

    def _check_new(self) -> None:
        assert incremental_continuity(self.store, TABLE, self.table.generations).passed  # noqa: S101 it is in order

    def _check_all(self) -> None:
        assert file_continuity(self.store, TABLE, self.table.generations).passed  # noqa: S101 it is in order

    def _one_more(self) -> None:
        """A landing run behind the last verdict."""
        self._check_new()
        self._land(self._staged(1))

    def _staged(self, count: int) -> list[SliceKey]:
        """So many slices, staged one ahead of the other."""
        position, keys = self.table.position(self.store), []
        for _ in range(count):
            record = self.table.stage(self.store, position)
            position = position.behind(record)
            keys.append(record.slice)
        return keys

    def _stage(self, slices: list[SliceKey], count: int) -> None:
        slices[:] = self._staged(count)

    def _land(self, slices: Sequence[SliceKey]) -> None:
        context = self.table.context(self.store)
        for key in slices:
            assert publish_slice(context, key).entries  # noqa: S101 it lands


def _copy(disk: LocalStore, item: LoopbackItem) -> None:
    """The landing zone's files, in the item."""
    for path in Path(disk.root).rglob("*"):
        if path.is_file():
            item.write(str(path.relative_to(disk.root)), path.read_bytes())


def _requests(
    server: LoopbackOneLake, context: Callable[[], object], before: Callable[[], object], rounds: int = _ROUNDS
) -> float:
    """How many requests it takes: the same in each round, so that one tells."""
    del rounds
    before()
    server.log.reset()
    context()
    return sum(server.log.counts().values())


def _seconds(context: Callable[[], object], before: Callable[[], object], rounds: int = _ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        before()
        began = time.perf_counter()
        context()
        taken.append(time.perf_counter() - began)
    return median(taken)


def _nothing() -> None:
    """There is nothing to prepare."""
