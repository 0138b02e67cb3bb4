"""Faults of a publisher: it dies at a request, or the request's answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from mirror_assets.errors import MirrorError
from mirror_assets.landing.steps import Create, Delete, DeleteTree, Rename, Replace, Request, Steps
from mirror_assets.zones import Store
from mirror_assets.zones.errors import REQUEST_UNKNOWN, STORE_UNAVAILABLE

WRITES = (Create, Replace, Rename, Delete, DeleteTree)


class Fault(Enum):
    """What goes wrong at a request."""

    CRASH_BEFORE = "crash before it"
    CRASH_AFTER = "crash after its effect"
    ANSWER_LOST = "done, and its answer lost"
    NOT_DONE = "not done, and no answer"


class Crashed(Exception):
    """The publisher's process is gone."""


@dataclass(frozen=True)
class Point:
    """A fault at the `at`-th request of a run, from 0."""

    at: int
    fault: Fault

    def __str__(self) -> str:
        return f"{self.fault.value} at request {self.at}"


def run_with(steps: Steps[object], store: Store, point: Point | None) -> list[Request]:
    """The requests that were asked until the steps ended, were given up, or crashed."""
    requested: list[Request] = []
    try:
        request = next(steps)
        while True:
            requested.append(request)
            try:
                reply = _answered(request, store, point.fault if point and point.at == len(requested) - 1 else None)
            except MirrorError as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except (StopIteration, Crashed, MirrorError):
        return requested


def _answered(request: Request, store: Store, fault: Fault | None) -> object:
    if fault is Fault.CRASH_BEFORE:
        raise Crashed
    reply = request.perform(store) if fault is not Fault.NOT_DONE else None
    if fault is Fault.CRASH_AFTER:
        raise Crashed
    if fault is not None:
        lost = REQUEST_UNKNOWN if isinstance(request, WRITES) else STORE_UNAVAILABLE
        raise lost(path=shown(request), why="no answer")
    return reply


def points(requests: int) -> Iterator[Point]:
    """Every fault at every request."""
    return (Point(at, fault) for at in range(requests) for fault in Fault)


def shown(request: object) -> str:
    """The request in a line: its kind and its texts, without the data."""
    return " ".join((type(request).__name__, *(value for value in vars(request).values() if isinstance(value, str))))
