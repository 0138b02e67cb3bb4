"""The leases of a table and of a batch of tables: one run works on each. Correctness needs no lease.

A batch is mirrored by the first run, until that one ends. Of two Dagster instances that mirror the same tables, the
second requests no run. If both began at once, the older run continues and the other ends.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations

from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import BATCH_LEASE, LEASES, TableName, batch_lease
from mirror_assets.landing.run_records import Lease, read_lease, record_failure, take_lease
from mirror_assets.landing.staged_parts import staged_folders
from mirror_assets.landing.steps import drive, read_control_file
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import RUN_KILLED, TABLE_BUSY
from mirror_assets.pipeline.liveness import RunState, beating, lease_state, new_lease, now_ms
from mirror_assets.zones import Store

_PAUSE_SECONDS = 1.0


def holder(store: Store, table: TableName) -> Lease | None:
    """Return the lease of the run that works on the table, or None; writes nothing. Raises what the store raises."""
    found = read_lease(store, table.lease)
    works = found is not None and lease_state(store, table.lease, found, writes=False) is RunState.WORKS
    return found if works else None


def holder_now(context: TableContext) -> Lease | None:
    """Return what `holder` returns, for schedulers: records a killed run, and deletes its unfinished attempts.

    A store that refuses that does not keep the table from its work.
    """
    found = read_lease(context.store, context.name.lease)
    if found is None:
        return None
    state = lease_state(context.store, context.name.lease, found, writes=True)
    if state is RunState.WORKS:
        return found
    with suppress(MirrorError):
        if state is RunState.KILLED:
            _bury(context, found)
        context.store.delete(context.name.lease)
    return None


@contextmanager
def leased(context: TableContext, run: str, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the table's lease during the block; the steps of one run may hold it one after another.

    Raises TABLE_BUSY when another run still holds it after the wait. A store that can't store a lease doesn't fail the
    block: a lease saves work, and correctness never depends on it.
    """
    deadline = time.monotonic() + wait_seconds
    with beating(context.store, run, context.name.lease) as delete_lease:
        while other := _acquire(context, run):
            if time.monotonic() >= deadline:
                raise TABLE_BUSY(table=str(context.name), who=str(other))
            time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            delete_lease()


def _acquire(context: TableContext, run: str) -> Lease | None:
    """Acquire the lease for the run; return the lease of another run that holds it instead."""
    ours = new_lease(str(context.name), run, now_ms())
    killed: list[Lease] = []

    def may_replace(other: Lease) -> bool:
        if other.run == run:
            return True
        state = lease_state(context.store, context.name.lease, other, writes=True)
        if state is RunState.KILLED:
            killed.append(other)
        return state is not RunState.WORKS

    with suppress(MirrorError):
        found = take_lease(context.store, context.name.lease, ours, may_replace)
        if found != ours:
            return found
        for left in killed:
            _bury(context, left)
    return None


def _bury(context: TableContext, left: Lease) -> None:
    """Record that the run was killed, and delete the attempts that it did not complete: they could fill the disk."""
    killed = RUN_KILLED(table=str(context.name), run=left.run)
    record_failure(context.store, context.name, killed.code, str(killed), now_ms())
    for store in {context.store, context.staging}:
        for folder in staged_folders(store, context.name):
            if drive(read_control_file(SliceRecord, folder.record), context.store).record is None:
                store.delete_tree(folder.path)


_READ_AFTER_SECONDS = 15.0
_OTHERS_AFTER_SECONDS = 60.0
_NAMED = 3


def batch_holder(store: Store, mirror: str, batch: int) -> Lease | None:
    """Return the newest lease of the batch, also of a run that has ended, or None. Raises what the store raises."""
    return read_lease(store, batch_lease(mirror, batch))


def tables_digest(tables: Iterable[str]) -> str:
    """Return a digest of the names, which two mirrors of the same tables have in common."""
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()[:16]


def request_end(store: Store, lease: Lease, path: str, code: str) -> None:
    """Write the mark of newer definitions into a batch's lease, so that its run ends. Raises what the store raises."""
    take_lease(store, path, lease.model_copy(update={"next_code": code}), lambda other: other == lease)


def end_lease(store: Store, lease: Lease, path: str) -> None:
    """Write into a batch's lease that its run has ended, so that the next run need not wait for its heartbeat."""
    take_lease(store, path, lease.model_copy(update={"run": ""}), lambda other: other == lease)


def other_mirrors(store: Store, mirror: str, batch: int, tables: Collection[str]) -> list[Lease]:
    """Return the leases of living runs of another mirror that mirror some of these tables."""
    ours = batch_lease(mirror, batch)
    living = _living(store, writes=True)
    return [lease for path, lease in living if path != ours and set(tables) & set(lease.tables)]


def tables_mirrored_twice(store: Store) -> list[str]:
    """Return a message for each two living runs that mirror the same tables. Raises what the store raises."""
    pairs = combinations([lease for _, lease in _living(store, writes=False)], 2)
    return [f"{shared_tables(one.tables, other)}; {one}" for one, other in pairs if set(one.tables) & set(other.tables)]


def shared_tables(tables: Collection[str], other: Lease) -> str:
    """Return the message that the run of another mirror mirrors some of these tables."""
    shared = sorted(set(tables) & set(other.tables))
    names = ", ".join(shared[:_NAMED]) + (f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else "")
    return f"another mirror has the same tables ({names}): {other}"


def has_runs(store: Store) -> bool:
    """Return whether a run of any sensor `mirror` works on this landing zone. Raises what the store raises."""
    return next(_living(store, writes=False), None) is not None


def _living(store: Store, *, writes: bool) -> Iterator[tuple[str, Lease]]:
    for info in store.list(LEASES):
        if info.name.startswith(BATCH_LEASE):
            found = read_lease(store, info.path)
            if found is not None and lease_state(store, info.path, found, writes=writes) is RunState.WORKS:
                yield info.path, found


@dataclass
class BatchRunner:
    """The calling run, as the one that mirrors a batch of tables; `tables` are their names.

    `mirror` is the code location and its Dagster instance, `code` the mark of the definitions that the run was started
    for.
    """

    store: Store
    mirror: str
    batch: int
    run: str
    code: str
    tables: tuple[str, ...] = ()
    _since_ms: int = field(default_factory=now_ms, init=False)
    _lease_read: float = field(default=float("-inf"), init=False)
    _others_read: float = field(default=float("-inf"), init=False)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the batch's lease during the block; it remains, for the sensor to see when its last run began."""
        with beating(self.store, self.run, self._path):
            yield

    def reason_to_end(self) -> str | None:
        """Return why the run should end: newer definitions, another run of the batch, or an older one of its tables.

        Acquires the lease first, also if the store has refused that before. Reads the store every few seconds only, and
        the leases of other mirrors once a minute. A store that does not respond is no reason.
        """
        now, reason = time.monotonic(), None
        with suppress(MirrorError):
            if now >= self._lease_read + _READ_AFTER_SECONDS:
                self._lease_read = now
                reason = self._own_reason()
            if reason is None and now >= self._others_read + _OTHERS_AFTER_SECONDS:
                self._others_read = now
                reason = self._others_reason()
        return reason

    def _own_reason(self) -> str | None:
        ours = new_lease(f"batch {self.batch} of {self.mirror}", self.run, self._since_ms, self.code, self.tables)
        found = read_lease(self.store, self._path)
        if found is None or found.run != self.run:
            found = take_lease(self.store, self._path, ours, self._is_over)
        if found is not None and found.run != self.run:
            return f"{found}"
        return (
            "settings, code or tables have changed"
            if found is not None and found.next_code not in ("", self.code)
            else None
        )

    def _is_over(self, other: Lease) -> bool:
        return lease_state(self.store, self._path, other, writes=True) is not RunState.WORKS

    def _others_reason(self) -> str | None:
        ours = (self._since_ms, self.run)
        others = other_mirrors(self.store, self.mirror, self.batch, self.tables)
        same = [one for one in others if set(one.tables) == set(self.tables) and (one.since_ms, one.run) < ours]
        return f"another Dagster instance mirrors the same tables: {same[0]}" if same else None

    @property
    def _path(self) -> str:
        return batch_lease(self.mirror, self.batch)
