"""What a thread works on: the table, the slice, the attempt. Log lines and Spark's jobs say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Scope:
    """The work of a thread; the slice is the one that it has worked on last, so that lines about its end name it.

    `trace` is the id of the slice's trace, if traces are exported; `plan` when the newest plan began and ended, in ns.
    """

    table: str
    slice: str | None = None
    attempt: str | None = None
    stage: str | None = None
    trace: str | None = None
    plan: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The work in one line: `shop.orders, slice 1.2-3, stage, trace 0af7…`."""
        slice_, trace = self.slice and f"slice {self.slice}", self.trace and f"trace {self.trace}"
        return ", ".join(part for part in (self.table, slice_, self.stage, trace) if part)


_SCOPE: ContextVar[Scope | None] = ContextVar("mirror_assets_scope", default=None)


def current_scope() -> Scope | None:
    """Return what the calling thread works on, or None."""
    return _SCOPE.get()


@contextmanager
def table_scope(table: str) -> Iterator[Scope]:
    """Say that the calling thread works on the table; inside a block for the same table, that goes on."""
    outer = _SCOPE.get()
    if outer is not None and outer.table == table:
        yield outer
        return
    token = _SCOPE.set(Scope(table))
    try:
        scope = _SCOPE.get()
        assert scope is not None  # noqa: S101 it was set
        yield scope
    finally:
        _SCOPE.reset(token)


@contextmanager
def slice_scope(table: str, slice_: str, trace: str | None) -> Iterator[Scope]:
    """Say that the calling thread works on the slice. A block for the table around this keeps it, for what follows."""
    with table_scope(table) as scope:
        if scope.slice != slice_:
            scope.slice, scope.attempt = slice_, None
        scope.trace = trace
        yield scope
