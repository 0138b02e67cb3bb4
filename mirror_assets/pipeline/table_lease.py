"""Works on a table under its lease, which keeps two runs from doing the same work; correctness needs no lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mirror_assets.errors import MirrorError
from mirror_assets.landing.control_file import read_control_file
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.lease import Lease, read_lease, take_lease
from mirror_assets.landing.names import TableName
from mirror_assets.landing.staged_parts import staged_folders
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.backoff import note_killed
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TableBusy
from mirror_assets.pipeline.liveness import VALID_SECONDS, is_gone, this_process
from mirror_assets.storage import Store

_RENEWED_AFTER_SECONDS = 30
_PAUSE_SECONDS = 1.0
_JOIN_SECONDS = 5.0


def holder(store: Store, table: TableName) -> Lease | None:
    """Return the lease of the run that works on the table, or None; writes nothing. Raises what the store raises."""
    found = drive(read_lease(table.lease), store)
    return None if found is None or is_gone(found) else found


def holder_now(context: TableContext) -> Lease | None:
    """Return what `holder` returns; a killed run is recorded, and what it has left behind deleted: for schedulers."""
    found = drive(read_lease(context.name.lease), context.store)
    if found is None or not is_gone(found):
        return found
    _bury(context, found)
    context.store.delete(context.name.lease)
    return None


@contextmanager
def leased(context: TableContext, run: str, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the table's lease during the block; the steps of one run may hold it one after another.

    Raises TableBusy when another run still holds it after the wait. A store that can't keep a lease does not fail the
    block: a lease saves work, and correctness never depends on it.
    """
    since = _take(context, run, wait_seconds)
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(context, run, ended, since), daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join(_JOIN_SECONDS)
        with suppress(MirrorError):
            context.store.delete(context.name.lease)


def _take(context: TableContext, run: str, wait_seconds: float) -> int:
    """Take the lease, and return since when it is held, in ms since 1970. Raises TableBusy."""
    deadline = time.monotonic() + wait_seconds
    while True:
        since = _now_ms()
        other = _holder_after(context, run, since)
        if other is None:
            return since
        if time.monotonic() >= deadline:
            raise TableBusy(str(context.name), str(other))
        time.sleep(_PAUSE_SECONDS)


def _renew(context: TableContext, run: str, ended: threading.Event, since_ms: int) -> None:
    while not ended.wait(_RENEWED_AFTER_SECONDS):
        _holder_after(context, run, since_ms)


def _holder_after(context: TableContext, run: str, since_ms: int) -> Lease | None:
    """Take or renew the lease for the run; return the lease of another run that holds it instead."""
    until = _now_ms() + int(VALID_SECONDS * 1000)
    ours = Lease(subject=str(context.name), run=run, process=this_process(), since_ms=since_ms, until_ms=until)
    killed: list[Lease] = []

    def may_replace(other: Lease) -> bool:
        if other.run != run and is_gone(other):
            killed.append(other)
        return other.run == run or is_gone(other)

    with suppress(MirrorError):
        found = drive(take_lease(context.name.lease, ours, may_replace), context.store)
        if found != ours:
            return found
        for left in killed:
            _bury(context, left)
    return None


def _bury(context: TableContext, left: Lease) -> None:
    """Record that the run was killed, and delete the attempts that it did not complete: they could fill the disk."""
    note_killed(context.store, context.name, left.run)
    for store in {context.store, context.staging}:
        for folder in staged_folders(store, context.name):
            if drive(read_control_file(SliceRecord, folder.record), context.store).record is None:
                store.delete_tree(folder.path)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
