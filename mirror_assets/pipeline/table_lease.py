"""Works on a table under its lease, which keeps two runs from doing the same work; correctness needs no lease."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mirror_assets.errors import MirrorError
from mirror_assets.landing.lease import Lease, read_lease, take_lease
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.backoff import note_killed
from mirror_assets.pipeline.errors import TableBusy
from mirror_assets.storage import Store

_VALID_SECONDS = 90
_RENEWED_AFTER_SECONDS = 30
_PAUSE_SECONDS = 1.0
_JOIN_SECONDS = 5.0


def holder(store: Store, table: TableName) -> Lease | None:
    """Return the lease of the run that works on the table, or None. Raises what the store raises.

    A lease that a killed run has left behind is deleted, and the run recorded as failed.
    """
    found = drive(read_lease(table), store)
    if found is None or not _is_void(found):
        return found
    note_killed(store, table, found.run)
    store.delete(table.lease)
    return None


@contextmanager
def leased(store: Store, table: TableName, run: str, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the table's lease during the block; the steps of one run may hold it one after another.

    Raises TableBusy when another run still holds it after the wait. A store that can't keep a lease does not fail the
    block: a lease saves work, and correctness never depends on it.
    """
    _take(store, table, run, wait_seconds)
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(store, table, run, ended), daemon=True)
    renewal.start()
    try:
        yield
    finally:
        ended.set()
        renewal.join(_JOIN_SECONDS)
        with suppress(MirrorError):
            store.delete(table.lease)


def _take(store: Store, table: TableName, run: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        other = _holder_after(store, table, run)
        if other is None:
            return
        if time.monotonic() >= deadline:
            raise TableBusy(str(table), str(other))
        time.sleep(_PAUSE_SECONDS)


def _renew(store: Store, table: TableName, run: str, ended: threading.Event) -> None:
    while not ended.wait(_RENEWED_AFTER_SECONDS):
        _holder_after(store, table, run)


def _holder_after(store: Store, table: TableName, run: str) -> Lease | None:
    """Take or renew the lease for the run; return the lease of another run that holds it instead."""
    until = _now_ms() + _VALID_SECONDS * 1000
    ours = Lease(table=str(table), run=run, host=platform.node(), pid=os.getpid(), until_ms=until)
    killed: list[Lease] = []

    def may_replace(other: Lease) -> bool:
        if other.run != run and _is_void(other):
            killed.append(other)
        return other.run == run or _is_void(other)

    with suppress(MirrorError):
        found = drive(take_lease(table, ours, may_replace), store)
        if found != ours:
            return found
        for left in killed:
            note_killed(store, table, left.run)
    return None


def is_gone(host: str, pid: int, until_ms: int) -> bool:
    """Return whether nobody renews a lease until that time any more, or its process on this machine has ended."""
    return until_ms <= _now_ms() or (host == platform.node() and not _is_alive(pid))


def _is_void(lease: Lease) -> bool:
    return is_gone(lease.host, lease.pid, lease.until_ms)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
