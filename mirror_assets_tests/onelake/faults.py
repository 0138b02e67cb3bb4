"""What can go wrong at a request, as values, and the list of what shall."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from mirror_assets_tests.onelake.messages import Answer, Request
from mirror_assets_tests.onelake.operations import Operation


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


Action = Drop | Reply | CutBody | Delay | Hold | Call


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
        """Whether it counts this request."""
        kind = request.operation.is_storage if self.on is None else request.operation is self.on
        return kind and fnmatch.fnmatchcase(request.path, self.path) and self.where(request)


class Held:
    """A request whose effect has not happened yet."""

    def __init__(self, request: Request, perform: Callable[[], Answer]) -> None:
        self.request, self._perform = request, perform

    def release(self) -> Answer:
        """Let the effect happen now; the answer that nobody waits for."""
        return self._perform()


class Faults:
    """The faults to come, by the order in which they were added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._met: dict[int, int] = {}
        self._faults: list[Fault] = []
        self._held: list[Held] = []

    def add(self, *faults: Fault) -> None:
        """Let these happen too, each by its own count."""
        with self._lock:
            self._faults.extend(faults)

    def clear(self) -> None:
        """Forget all faults, and all that is held."""
        with self._lock:
            self._faults, self._met, self._held = [], {}, []

    @property
    def held(self) -> tuple[Held, ...]:
        """The requests that wait for their release, the oldest first."""
        with self._lock:
            return tuple(self._held)

    def hold(self, held: Held) -> None:
        """Keep a request for the test to release."""
        with self._lock:
            self._held.append(held)

    def meet(self, request: Request) -> tuple[Fault, ...]:
        """The faults that happen at this request, which each that fits now counts."""
        with self._lock:
            return tuple(self._due(request))

    def _due(self, request: Request) -> Iterator[Fault]:
        for index, fault in enumerate(self._faults):
            if fault.fits(request):
                self._met[index] = self._met.get(index, 0) + 1
                if fault.nth <= self._met[index] < fault.nth + fault.times:
                    yield fault
