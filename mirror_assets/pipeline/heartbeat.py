"""Writes one heartbeat file for all leases of a run, and knows which leases this process holds.

The heartbeat is written before the first lease and deleted after the last one: a lease of a run without a heartbeat was
released, though the store refused to delete it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from mirror_assets.errors import MirrorError
from mirror_assets.landing.lease import Lease, read_lease, write_heartbeat
from mirror_assets.landing.names import LEASES, heartbeat_path, is_run_file
from mirror_assets.pipeline.liveness import RunState, run_state, this_process
from mirror_assets.zones import Store

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
def beating(store: Store, run: str, path: str) -> Iterator[None]:
    """Write the run's heartbeat during the block, in which it may hold the lease at `path`.

    A store that refuses a request fails no block.
    """
    heart = _HEARTS.setdefault((store.root, run), _Heart(store, run))
    heart.hold(path)
    try:
        yield
    finally:
        heart.release(path)


def delete_lease(store: Store, run: str, path: str) -> None:
    """Delete the run's lease, in the block of `beating`, unless the run has acquired it twice.

    While the run has other leases, a deletion that the store refuses is retried, unless another run has the lease.
    """
    _HEARTS[store.root, run].delete(path)


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
