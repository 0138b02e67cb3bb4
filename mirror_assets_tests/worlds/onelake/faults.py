"""What can go wrong at a request, as values, and the list of what shall."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets_tests.worlds.onelake.messages import Answer, Operation, Request


class Moment(Enum):
    """On which side of the request's effect something happens."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Drop:
    """The connection ends without an answer: before the effect, or after it (the answer is lost)."""

    moment: Moment


@dataclass(frozen=True)
class Reply:
    """Another answer: before the effect, which then doesn't happen, or after it, although it was done."""

    status: int
    code: str
    headers: Mapping[str, str] = field(default_factory=dict)
    moment: Moment = Moment.BEFORE


@dataclass(frozen=True)
class CutBody:
    """The answer's body ends after this share of it; its headers promise all of it."""

    share: float = 0.5


@dataclass(frozen=True)
class Garble:
    """The request is done, and its answer comes with these headers, and this body if one is given, for its own."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Lag:
    """A listing does not have the names that a pattern fits, in which `*` also stands for slashes: they are too new."""

    names: str


@dataclass(frozen=True)
class Delay:
    """The server takes its time, before the effect or after it."""

    seconds: float
    moment: Moment = Moment.BEFORE


@dataclass(frozen=True)
class Hold:
    """The connection ends without an answer, and the effect happens when the test says so: a late request."""


@dataclass(frozen=True)
class Call:
    """The test's function is called, in a thread of its own, while the request waits. It may use the server itself."""

    function: Callable[[Request], object]
    moment: Moment


Action = Drop | Reply | CutBody | Garble | Lag | Delay | Hold | Call


def _any_request(_: Request) -> bool:
    return True


@dataclass(frozen=True)
class Fault:
    """An action at the nth request that fits, counted from when the fault is added, and at the `times` from there on.

    Without `on`, all requests to the storage fit. `path` is a pattern for the path below the item, in which `*` also
    stands for slashes.
    """

    action: Action
    on: Operation | None = None
    path: str = "*"
    where: Callable[[Request], bool] = _any_request
    nth: int = 1
    times: int = 1

    def fits(self, request: Request) -> bool:
        kind = request.operation.is_storage if self.on is None else request.operation is self.on
        return kind and fnmatch.fnmatchcase(request.path, self.path) and self.where(request)


class Held:
    """A request whose effect has not happened yet."""

    def __init__(self, request: Request, perform: Callable[[Request], Answer]) -> None:
        self.request, self._perform = request, perform

    def release(self) -> Answer:
        """Let the effect happen now, once for each call as on a network; the answer that nobody waits for."""
        return self._perform(self.request)


class Faults:
    """What shall go wrong, each fault by its own count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: list[_Counted] = []
        self._held: list[Held] = []

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._counted.extend(_Counted(fault) for fault in faults)

    def end(self) -> None:
        """Let no more faults happen; what is held stays held."""
        with self._lock:
            self._counted = []

    def clear(self) -> None:
        with self._lock:
            self._counted, self._held = [], []

    @property
    def unmet(self) -> tuple[Fault, ...]:
        """The faults whose nth request has not come: a test that wanted them has shown nothing."""
        with self._lock:
            return tuple(counted.fault for counted in self._counted if counted.requests < counted.fault.nth)

    @property
    def held(self) -> tuple[Held, ...]:
        """The requests that wait for their release, the oldest first."""
        with self._lock:
            return tuple(self._held)

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held.append(held)

    def meet(self, request: Request) -> tuple[Fault, ...]:
        """The faults that happen at this request, by the order in which they were added; each that fits counts it."""
        with self._lock:
            return tuple(counted.fault for counted in self._counted if counted.due(request))


@dataclass
class _Counted:
    fault: Fault
    requests: int = 0

    def due(self, request: Request) -> bool:
        """Count the request if it fits; whether the fault happens at it."""
        if not self.fault.fits(request):
            return False
        self.requests += 1
        return self.fault.nth <= self.requests < self.fault.nth + self.fault.times
