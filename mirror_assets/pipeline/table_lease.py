"""Holds a table's lease, which prevents two runs from doing the same work; correctness needs no lease."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mirror_assets.errors import MirrorError
from mirror_assets.landing.control_file import read_control_file
from mirror_assets.landing.failures import record_failure
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.lease import Lease, read_lease, take_lease
from mirror_assets.landing.names import TableName
from mirror_assets.landing.staged_parts import staged_folders
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import RUN_KILLED, TABLE_BUSY
from mirror_assets.pipeline.heartbeat import beating, delete_lease, lease_state
from mirror_assets.pipeline.liveness import RunState, new_lease, now_ms
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

    Raises TableBusy when another run still holds it after the wait. A store that can't store a lease doesn't fail the
    block: a lease saves work, and correctness never depends on it.
    """
    deadline = time.monotonic() + wait_seconds
    with beating(context.store, run, context.name.lease):
        while other := _acquire(context, run):
            if time.monotonic() >= deadline:
                raise TABLE_BUSY(table=str(context.name), who=str(other))
            time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            delete_lease(context.store, run, context.name.lease)


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
