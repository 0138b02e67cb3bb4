"""A landing zone on disk where something happens at the nth store request of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from io import IOBase
from pathlib import Path
from random import Random

from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import REQUEST_UNKNOWN


class Killed(BaseException):
    """The process is gone: nothing catches this, and nothing is cleaned up."""


class Happening(Enum):
    KILLED_BEFORE = "killed before it"
    KILLED_AFTER = "killed after its effect"
    ANSWER_LOST = "done, and its answer lost"
    NOT_DONE = "not done, and no answer"
    OVERTAKEN = "another run goes all the way before it"


@dataclass(frozen=True)
class Fault:
    """Something that happens at the `at`-th request of a run, from 0; of its writes, where `writes`."""

    happening: Happening
    at: int
    writes: bool

    @classmethod
    def drawn(cls, rng: Random) -> Fault:
        """A slice takes about 50 requests, 6 of them writes, and a rebuild some more."""
        writes = rng.random() < 0.5
        return cls(rng.choice(list(Happening)), rng.randint(0, 12 if writes else 55), writes)

    def __str__(self) -> str:
        return f"{self.happening.value}, {'write' if self.writes else 'request'} {self.at}"


class FaultyStore(LocalStore):
    """The same store, with one fault; after every write `look` checks what is there."""

    def __init__(self, root: Path, look: Callable[[], None], fault: Fault | None, overtake: Callable[[], None]) -> None:
        super().__init__(root)
        self.look, self._fault, self._overtake = look, fault, overtake
        self._requests = self._writes = 0
        self.happened = False

    def requested(self, request: Callable[[], object], path: str, *, writes: bool) -> object:
        happening = self._due(writes=writes)
        if happening is Happening.OVERTAKEN:
            self._overtake()
        if happening is Happening.KILLED_BEFORE:
            raise Killed
        if happening is Happening.NOT_DONE and writes:
            raise REQUEST_UNKNOWN(path=path, why="no answer")
        reply = request()
        if happening is Happening.KILLED_AFTER:
            if isinstance(reply, IOBase):
                reply.close()  # as the system does for a process that is gone
            raise Killed
        if happening is Happening.ANSWER_LOST and writes:
            raise REQUEST_UNKNOWN(path=path, why="no answer")
        return reply

    def _due(self, *, writes: bool) -> Happening | None:
        """What happens at this request, which is counted here."""
        fault, count = self._fault, self._writes if self._fault and self._fault.writes else self._requests
        self._requests += 1
        self._writes += writes
        if fault is None or self.happened or (fault.writes and not writes) or count != fault.at:
            return None
        self.happened = True
        return fault.happening


def _faulty(name: str, *, writes: bool) -> Callable[..., object]:
    method = getattr(LocalStore, name)

    @wraps(method)
    def call(store: FaultyStore, *arguments: object) -> object:
        path = str(arguments[1 if name == "rename" else 0])
        reply = store.requested(lambda: method(store, *arguments), path, writes=writes)
        if writes:
            store.look()
        return reply

    return call


for _name in ("head", "list", "folder_identity", "read", "read_if_changed", "open", "fsync"):
    setattr(FaultyStore, _name, _faulty(_name, writes=False))
for _name in ("create", "replace", "rename", "delete", "delete_tree", "make_folder"):
    setattr(FaultyStore, _name, _faulty(_name, writes=True))
