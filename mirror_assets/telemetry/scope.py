"""The table, slice and attempt that a thread works on, for log lines and the descriptions of Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class WorkScope:
    """The work of a thread. `slice` remains set after the slice has ended, so that an error's log line names it.

    `trace` is the id of the slice's trace, if traces are exported; `plan` is when the last plan began and ended, in ns.
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


_SCOPE: ContextVar[WorkScope | None] = ContextVar("mirror_assets_scope", default=None)


def current_scope() -> WorkScope | None:
    """Return the scope of the calling thread, or None."""
    return _SCOPE.get()


@contextmanager
def table_scope(table: str) -> Iterator[WorkScope]:
    """Set the table of the calling thread; an outer block for the same table continues instead."""
    outer = _SCOPE.get()
    if outer is not None and outer.table == table:
        yield outer
        return
    scope = WorkScope(table)
    token = _SCOPE.set(scope)
    try:
        yield scope
    finally:
        _SCOPE.reset(token)


@contextmanager
def slice_scope(table: str, slice_: str, trace: str | None) -> Iterator[WorkScope]:
    """Set the slice of the calling thread. An outer block for the table keeps it after this block has ended."""
    with table_scope(table) as scope:
        if scope.slice != slice_:
            scope.slice, scope.attempt = slice_, None
        scope.trace = trace
        yield scope
