"""A large mirror compared with its source, and made equal to it: by a repair, and by a rebuild."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.meter import Cost
from benchmarks.result import Case, Outcome
from benchmarks.source import load_table
from mirror_assets.monitoring import Mirror
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_in_turn
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.verify import reconcile
from mirror_assets.verify.reconciliation import ReconcileState

_WHOLE, _DIFFERING = "all rows", "all rows, one differs"
_SHARE, _UNCHANGED = "a share of the columns", "neither side has changed"
_REPAIR, _REBUILD = "repair", "rebuild"
# 400 rows that differ, 300 that are missing, 300 that the source doesn't have.
_DAMAGES = (
    "UPDATE {m} SET flight = -1 WHERE id < 400",
    "DELETE FROM {m} WHERE id BETWEEN 400 AND 699",
    "INSERT INTO {m} SELECT -id AS id, * EXCEPT (id) FROM {m} WHERE id BETWEEN 700 AND 999",
)


class _Compared:
    """A table and its mirror: the costs of each way, and the seconds in which nobody could read the mirror."""

    def __init__(self, bench: Bench, rows: int) -> None:
        """Mirror a table with so many rows."""
        self._bench, self.rows, self.uri = bench, rows, str(bench.folder / "source")
        load_table(bench.spark, self.uri, rows, vectors=True)
        self.table = BenchTable(bench.spark, bench.folder / "zone", self.uri, "keys: [id]")
        store = self.table.context().config.zone.open()
        self.mirror: Mirror = LocalReplicator(store, self.table.root / "mirror").at_once()
        self.costs: dict[str, list[Cost]] = {}
        self.away: dict[str, list[float]] = {}
        self.table.land()
        self.mirror.poll()

    @property
    def location(self) -> str:
        """The mirror's Delta table."""
        (status,) = self.mirror.status()
        return status.location

    def change(self, which: str) -> None:
        """Update these rows, and mirror that."""
        self._bench.spark.sql(f"UPDATE delta.`{self.uri}` SET delay = delay + 1 WHERE {which}")
        self.table.land()
        self.mirror.poll()

    def compare(self, way: str, wanted: ReconcileState, *, scheduled: bool = False) -> None:
        """Measure a comparison."""

        def once() -> None:
            found = reconcile_in_turn(self.table.context(), self.mirror, scheduled=scheduled)
            if found.state is not wanted:
                raise RuntimeError(f"{way}: {found}")

        self.costs.setdefault(way, []).append(self._bench.meter.measured(once))

    @contextmanager
    def as_if_large(self) -> Iterator[None]:
        """Compare by shares, whatever the size of the table."""
        limit = reconcile._LARGE_BYTES  # noqa: SLF001 it is no setting
        reconcile._LARGE_BYTES = 0  # noqa: SLF001
        try:
            yield
        finally:
            reconcile._LARGE_BYTES = limit  # noqa: SLF001

    def damage(self, *statements: str) -> None:
        """Change the mirror behind the publisher's back; {m} is its table."""
        for statement in statements:
            self._bench.spark.sql(statement.format(m=f"delta.`{self.location}`"))

    def mend(self, way: str, run: Callable[[], object]) -> None:
        """Measure what makes the mirror equal again, until it has been applied."""
        self.damage(*_DAMAGES)

        def once() -> None:
            run()
            self.mirror.poll()

        with _watched(Path(self.location)) as away:
            self.costs.setdefault(way, []).append(self._bench.meter.measured(once))
        self.away.setdefault(way, []).append(away[0])
        self.compare(f"after the {way}", ReconcileState.EQUAL)


@contextmanager
def _watched(location: Path) -> Iterator[list[float]]:
    """Count the seconds in which the Delta table can't be opened, as whoever queries it does all the time."""
    away, over = [0.0], threading.Event()

    def look() -> None:
        seen = time.monotonic()
        while not over.wait(0.05):
            try:
                DeltaTable(location)
            except DeltaError:
                away[0] += time.monotonic() - seen
            seen = time.monotonic()

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield away
    finally:
        over.set()
        watch.join()


def run(bench: Bench) -> Outcome:
    """Measure the comparisons after an update, in turns, then a repair and a rebuild of 1,000 damaged rows."""
    compared, rounds = _Compared(bench, bench.size(1_000_000, 20_000_000)), 2
    compared.compare(_WHOLE, ReconcileState.EQUAL)
    for turn in range(rounds):
        compared.change(f"id % 100 = {turn}")
        with compared.as_if_large():
            compared.compare(_SHARE, ReconcileState.EQUAL, scheduled=True)
        compared.compare(_WHOLE, ReconcileState.EQUAL)
        compared.compare(_UNCHANGED, ReconcileState.EQUAL, scheduled=True)
        compared.damage("UPDATE {m} SET flight = flight + 1 WHERE id = 17")
        compared.compare(_DIFFERING, ReconcileState.DIFFERENT)
        compared.damage("UPDATE {m} SET flight = flight - 1 WHERE id = 17")
    context, mirror = compared.table.context, compared.mirror
    for _ in range(rounds):
        compared.mend(_REPAIR, lambda: repair_table(context(), mirror, lambda _: None))
        compared.mend(_REBUILD, lambda: rebuild_table(context(), mirror, lambda _: None))
    # The first comparison of all rows warms the session.
    compared.costs[_WHOLE].pop(0)
    cases = [
        Case(f"{name}, {compared.rows:,} rows", {way: tuple(compared.costs[way]) for way in ways}, ways[0])
        for name, ways in (
            ("compare", (_WHOLE, _SHARE, _UNCHANGED, _DIFFERING)),
            ("1,000 damaged rows", (_REBUILD, _REPAIR)),
        )
    ]
    notes = [f"  {way}: the mirror was away for {max(away):.1f} s at most" for way, away in compared.away.items()]
    return Outcome("comparing", cases, notes=notes)
