"""Detects whether the process that holds a lease still runs, and writes the heartbeat of this one.

On the machine that knows its process id, the process table decides. Of other machines and containers, only the
heartbeat file of the run is known: the run is dead when the file hasn't changed for `SILENT_SECONDS`. Only the store's
clock and the observer's own clock are compared, never that of the run.

A run writes one heartbeat file for all its leases, before the first lease, and deletes it after the last one: a lease
of a run without a heartbeat was released, though the store refused to delete it.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import LEASES, clock_path, heartbeat_path, is_run_file
from mirror_assets.landing.run_records import Lease, Process, read_lease, write_heartbeat
from mirror_assets.zones import Store

# A request to a store is retried for up to two minutes, and a heartbeat is written every thirty seconds.
SILENT_SECONDS = 300.0
_PROC = Path("/proc")
_ENDED = ("Z", "X")


def this_process() -> Process:
    """Return this process, with the kernel and the namespace that know its id."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (_PROC / "self/ns/pid").readlink().name
        started = _started(os.getpid()) or 0
    except OSError:
        boot, namespace, started = "", "", 0
    return Process(host=platform.node(), boot=boot, namespace=namespace, pid=os.getpid(), started=started)


def new_lease(subject: str, run: str, since_ms: int, code: str = "", tables: tuple[str, ...] = ()) -> Lease:
    """Return the lease of a run of this process."""
    return Lease(subject=subject, run=run, process=this_process(), since_ms=since_ms, code=code, tables=tables)


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def has_ended(process: Process) -> bool | None:
    """Return whether the process has ended; None if it is on another machine or in another container."""
    here = this_process()
    if not process.boot or (process.boot, process.namespace) != (here.boot, here.namespace):
        return None
    try:
        return _started(process.pid) != process.started
    except OSError:
        return False  # it is there, and belongs to a user whose processes are hidden


class RunState(Enum):
    """The state of a run by its process and its heartbeat: it was killed, or it has released its leases."""

    WORKS = "works"
    RELEASED = "released"
    KILLED = "killed"


def run_state(store: Store, run: str, process: Process | None, *, writes: bool) -> RunState:
    """Return the state of a run of another process; None: its process is unknown.

    Costs one request to the store if the process runs or is on another machine. An observer that `writes` reads the
    store's clock by a file of its own when it first sees a heartbeat. One that does not, waits `SILENT_SECONDS`. Raises
    what the store raises.
    """
    ended = has_ended(process) if process is not None else None
    if ended:
        return RunState.KILLED
    found = store.head(heartbeat_path(run))
    if found is None:
        return RunState.RELEASED
    is_dead = ended is None and _silence(store, found.path, found.etag, writes=writes) >= SILENT_SECONDS
    return RunState.KILLED if is_dead else RunState.WORKS


# The ETag of each heartbeat, and since when it is unchanged, by `time.monotonic`.
_SIGHTINGS: dict[tuple[str, str], tuple[str, float]] = {}


def _silence(store: Store, path: str, etag: str, *, writes: bool) -> float:
    """Return for how many seconds this process knows that the file hasn't changed."""
    now, key = time.monotonic(), (store.root, path)
    seen = _SIGHTINGS.get(key)
    if seen is None or seen[0] != etag:
        age = _age(store, path) if seen is None and writes else 0.0
        seen = _SIGHTINGS[key] = (etag, now - age)
    return now - seen[1]


def _age(store: Store, path: str) -> float:
    """Return the seconds since the file was written, by the store's clock; 0 if unknown."""
    clock = clock_path(uuid.uuid4().hex)
    with suppress(MirrorError):
        store.create(clock, b"{}")
        modified = {info.path: info.modified for info in store.list(LEASES)}
        store.delete(clock)
        written, now = modified.get(path), modified.get(clock)
        return now - written if now is not None and written is not None else 0.0
    return 0.0


def _started(pid: int) -> int | None:
    """Return when the process began, in clock ticks; None if there is no such process. Raises OSError."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return None
        raise
    # The second field is the program's name in brackets, which may hold blanks and brackets of its own.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[19])


_BEAT_SECONDS = 30.0
# A killed run leaves its heartbeat behind, for those who find its leases. By then, all of them have been found.
_LEFTOVER_SECONDS = 86_400.0


@dataclass
class _Heart:
    """The leases of one run of this process in one store; while there is any, one thread writes the heartbeat.

    `refused` are leases that the run has released and the store has not deleted: the thread tries again.
    """

    store: Store
    run: str
    held: Counter[str] = field(default_factory=Counter)
    refused: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event | None = None

    def hold(self, path: str) -> None:
        with self._lock:
            self.held[path] += 1
            self.refused.discard(path)
            if self._stopped is None:
                self._stopped = threading.Event()
                self._beat()
                threading.Thread(target=self._run, args=(self._stopped,), name="heartbeat", daemon=True).start()

    def delete(self, path: str) -> None:
        """Delete the lease, unless the run has acquired it twice; a deletion that the store refuses is retried."""
        if self.held[path] > 1:
            return
        try:
            self.store.delete(path)
        except MirrorError:
            self.refused.add(path)

    def release(self, path: str) -> None:
        """Delete the heartbeat after the last lease."""
        with self._lock:
            self.held[path] -= 1
            self.held += Counter()  # forgets what is no longer held
            if not self.held and self._stopped is not None:
                self._stopped.set()
                self._stopped = None
                with suppress(MirrorError):
                    self.store.delete(heartbeat_path(self.run))

    def _run(self, stopped: threading.Event) -> None:
        is_first = True
        while not stopped.wait(_BEAT_SECONDS):
            with self._lock:
                if stopped.is_set():
                    return
                self._beat()
            self._delete_refused()
            if is_first:
                is_first = False
                _delete_leftovers(self.store, heartbeat_path(self.run))

    def _delete_refused(self) -> None:
        """Delete leases whose deletion the store has refused; the next time, those after another refusal."""
        with suppress(MirrorError):
            for path in list(self.refused):
                found = read_lease(self.store, path)
                if path not in self.held and found is not None and found.run == self.run:
                    self.store.delete(path)
                self.refused.discard(path)

    def _beat(self) -> None:
        with suppress(MirrorError):
            write_heartbeat(self.store, self.run, this_process())


_HEARTS: dict[tuple[str, str], _Heart] = {}


@contextmanager
def beating(store: Store, run: str, path: str) -> Iterator[Callable[[], None]]:
    """Write the run's heartbeat during the block, in which it may hold the lease at `path`; yield what deletes that.

    A store that refuses a request fails no block. A lease that the run has acquired twice is not deleted. While the run
    has other leases, a deletion that the store refuses is retried, unless another run has the lease.
    """
    heart = _HEARTS.setdefault((store.root, run), _Heart(store, run))
    heart.hold(path)
    try:
        yield partial(heart.delete, path)
    finally:
        heart.release(path)


def lease_state(store: Store, path: str, lease: Lease, *, writes: bool) -> RunState:
    """Return the state of the run with respect to its lease; `writes` as in `run_state`. Raises what the store raises.

    A lease of this process that the run no longer holds was released, whatever the store has done with the file.
    """
    if lease.process != this_process():
        return run_state(store, lease.run, lease.process, writes=writes)
    heart = _HEARTS.get((store.root, lease.run))
    return RunState.WORKS if heart is not None and path in heart.held else RunState.RELEASED


def _delete_leftovers(store: Store, own: str) -> None:
    """Delete heartbeats that are a day older than the one just written: nothing else in the zone counts killed runs."""
    with suppress(MirrorError):
        files = {info.path: info.modified for info in store.list(LEASES) if is_run_file(info.name)}
        now = files.get(own)
        for path, modified in files.items():
            if now is not None and modified is not None and now - modified > _LEFTOVER_SECONDS:
                store.delete(path)
