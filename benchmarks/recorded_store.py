"""A store that records its requests with their times, and delays each as a remote store would."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from mirror_assets.zones import Store

_LONG = 40
_REQUESTS = frozenset({"head", "list", "read", "open", "create", "replace", "rename", "delete", "delete_tree"})


@dataclass(frozen=True)
class Step:
    """Something that took time, in seconds of `time.perf_counter`."""

    name: str
    began: float
    ended: float

    def since(self, zero: float) -> str:
        """Return its start after that time, its duration and its name."""
        return f"  {(self.began - zero) * 1000:7.1f} ms {(self.ended - self.began) * 1000:7.1f} ms  {self.name}"


@dataclass(frozen=True)
class RecordedStore:
    """The requests to a store; each takes `delay` seconds longer than the store itself."""

    store: Store
    delay: float = 0.0
    requests: list[Step] = field(default_factory=list)

    def as_store(self) -> Store:
        """Return this store, which has every method of the one that it records."""
        return cast("Store", self)

    def __getattr__(self, name: str) -> object:
        """Return the store's own attribute; a method that sends a request is recorded."""
        found = getattr(self.store, name)
        if name not in _REQUESTS:
            return found
        method = cast("Callable[..., object]", found)

        def recorded(path: str, *arguments: object) -> object:
            began = time.perf_counter()
            time.sleep(self.delay)
            try:
                return method(path, *arguments)
            finally:
                shown = path.rpartition("/")[2] if len(path) > _LONG else path
                self.requests.append(Step(f"{name} {shown}", began, time.perf_counter()))

        return recorded


def depth(requests: Sequence[Step]) -> int:
    """Return the length of the longest chain of requests of which each began after the one before had ended."""
    chained, ended = 0, float("-inf")
    for one in sorted(requests, key=lambda step: step.ended):
        if one.began >= ended:
            chained, ended = chained + 1, one.ended
    return chained
