"""The progress of a command's work on tables, which the steps record: what is left, running and done.

Work is counted in pieces (slices, chunks, scans), each with a weight, such as its rows. Nothing is recorded unless a
command follows the progress.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass
class TableWork:
    """The work on one table: the weights of what is left and running, and the number and weight of what is done.

    `later` is an estimate of the weight of what is not planned yet, in an unknown number of pieces.
    """

    left: list[int] = field(default_factory=list)
    later: int = 0
    running: int = 0
    pieces: int = 0
    weight: int = 0
    has_ended: bool = False


WorkProgress: TypeAlias = dict[str, TableWork]
"""The work on all tables of a command, by name. Each table is worked on by one thread at a time."""
_FOLLOWED: list[WorkProgress] = []


@contextmanager
def following_progress() -> Iterator[WorkProgress]:
    """Yield the progress of the work that this process does in the block."""
    _FOLLOWED.append(defaultdict(TableWork))
    try:
        yield _FOLLOWED[-1]
    finally:
        _FOLLOWED.pop()


def expect(table: str, weights: Sequence[int], later: int = 0) -> None:
    """Record what is left of the table, and what is not planned yet, in place of what was expected before."""
    for progress in _FOLLOWED[-1:]:
        progress[table].left, progress[table].later = list(weights), later


@contextmanager
def working(table: str) -> Iterator[None]:
    """Record that the block does the first piece that is left of the table."""
    of_table = _FOLLOWED[-1][table] if _FOLLOWED else TableWork()
    of_table.running = of_table.left.pop(0) if of_table.left else 0
    yield
    of_table.pieces, of_table.weight = of_table.pieces + 1, of_table.weight + of_table.running
    of_table.running = 0


def end_work(table: str) -> None:
    """Record that nothing more is done to the table, also if it has failed."""
    for progress in _FOLLOWED[-1:]:
        of_table = progress[table]
        of_table.left, of_table.later, of_table.running, of_table.has_ended = [], 0, 0, True
