"""Decides which run mirrors a batch of tables: a run takes over, renews its lease, and ends when it is replaced.

Of two Dagster instances that mirror the same tables, the second requests no run. If both began at once, the older run
continues and the other ends.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeVar

from mirror_assets.errors import MirrorError
from mirror_assets.landing.lease import Lease, read_lease, take_lease
from mirror_assets.landing.names import BATCH_LEASE, LEASES, batch_lease
from mirror_assets.pipeline.liveness import is_gone, new_lease, now_ms
from mirror_assets.storage import Store

_RENEWED_AFTER_SECONDS = 5.0
_OTHERS_AFTER_SECONDS = 60.0
_TRIES = 10
_NAMED = 3
_Table = TypeVar("_Table")


def batch_of(tables: Sequence[_Table], number: int, batches: int) -> list[_Table]:
    """Return the tables of a batch, from 0: every n-th. So a table is in one batch only."""
    return list(tables[number::batches])


def batch_holder(store: Store, mirror: str, batch: int) -> Lease | None:
    """Return the newest lease of the batch, also of a run that has ended, or None. Raises what the store raises."""
    return read_lease(store, batch_lease(mirror, batch))


def tables_digest(tables: Iterable[str]) -> str:
    """Return a digest of the names, which two mirrors of the same tables have in common."""
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()[:16]


def other_mirrors(store: Store, mirror: str, batch: int, tables: Collection[str]) -> list[Lease]:
    """Return the leases of living runs of another mirror that mirror some of these tables."""
    ours = batch_lease(mirror, batch)
    return [lease for path, lease in _living(store) if path != ours and set(tables) & set(lease.tables)]


def tables_mirrored_twice(store: Store) -> list[str]:
    """Return a message for each two living runs that mirror the same tables. Raises what the store raises."""
    pairs = combinations([lease for _, lease in _living(store)], 2)
    return [f"{shared_tables(one.tables, other)}; {one}" for one, other in pairs if set(one.tables) & set(other.tables)]


def shared_tables(tables: Collection[str], other: Lease) -> str:
    """Return the message that the run of another mirror mirrors some of these tables."""
    shared = sorted(set(tables) & set(other.tables))
    names = ", ".join(shared[:_NAMED]) + (f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else "")
    return f"another mirror has the same tables ({names}): {other}"


def has_runs(store: Store) -> bool:
    """Return whether a run of any sensor `mirror` works on this landing zone. Raises what the store raises."""
    return next(_living(store), None) is not None


def _living(store: Store) -> Iterator[tuple[str, Lease]]:
    for info in store.list(LEASES):
        if info.name.startswith(BATCH_LEASE):
            found = read_lease(store, info.path)
            if found is not None and not is_gone(found):
                yield info.path, found


@dataclass
class BatchRunner:
    """The calling run, as the one that mirrors a batch of tables; `tables` are their names.

    `mirror` is the code location and its Dagster instance, `code` the definitions that the run was started for.
    """

    store: Store
    mirror: str
    batch: int
    run: str
    code: str
    tables: tuple[str, ...] = ()
    _since_ms: int = field(default_factory=now_ms, init=False)
    _renewed: float = field(default=0.0, init=False)
    _others_read: float = field(default=float("-inf"), init=False)
    _is_ours: bool = field(default=True, init=False)

    def take_over(self) -> None:
        """Replace any other run of the batch. A store that can't store the lease is not a failure."""
        with suppress(MirrorError):
            for _ in range(_TRIES):  # another may renew at the same time
                if take_lease(self.store, self._path, self._lease(), lambda _: True) is not None:
                    break
        self._renewed = time.monotonic()

    def is_replaced(self) -> bool:
        """Return whether another run has taken over, or an older run of another mirror has the same tables.

        Reads the store every few seconds only, and the leases of other mirrors once a minute.
        """
        if self._is_ours and time.monotonic() >= self._renewed + _RENEWED_AFTER_SECONDS:
            self._renew()
            self._renewed = time.monotonic()
        if self._is_ours and time.monotonic() >= self._others_read + _OTHERS_AFTER_SECONDS:
            self._others_read, ours = time.monotonic(), (self._since_ms, self.run)
            with suppress(MirrorError):
                others = other_mirrors(self.store, self.mirror, self.batch, self.tables)
                same = [(one.since_ms, one.run) for one in others if set(one.tables) == set(self.tables)]
                self._is_ours = min(same, default=ours) >= ours
        return not self._is_ours

    def leave(self) -> None:
        """Record that this run has ended, unless another has taken over."""
        self._renew(has_ended=True)

    def _renew(self, *, has_ended: bool = False) -> None:
        lease = self._lease().model_copy(update={"until_ms": 0}) if has_ended else self._lease()
        with suppress(MirrorError):
            found = take_lease(self.store, self._path, lease, lambda other: other.run == self.run)
            # The next renewal detects a run that was faster.
            self._is_ours = found is None or found.run == self.run

    @property
    def _path(self) -> str:
        return batch_lease(self.mirror, self.batch)

    def _lease(self) -> Lease:
        return new_lease(f"batch {self.batch} of {self.mirror}", self.run, self._since_ms, self.code, self.tables)
