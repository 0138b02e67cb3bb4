"""An operation as a value: what it does to a source, and what must land."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mirror_assets_tests.worlds.operations.source import Source

Do = Callable[[Source], object]


class Trait(Enum):
    """What an operation needs of a table, or can't do on it."""

    PARTITIONED = "partitioned"
    VECTORS = "deletion vectors"
    MAPPED = "column mapping"
    CLUSTERED = "clustered"
    GENERATED = "generated columns"
    RUST = "delta-rs may write it"


@dataclass(frozen=True)
class Lands:
    """Changes that land of an operation; `updates` None: also rows that were only moved to another file."""

    inserts: int = 0
    updates: int | None = 0
    deletes: int | None = 0


NOTHING = Lands()


@dataclass(frozen=True)
class Operation:
    """One operation; it may be several commits, or none. Nothing landed means that only `covered` moves."""

    name: str
    do: Do
    lands: Lands = NOTHING
    needs: frozenset[Trait] = frozenset()
    never_with: frozenset[Trait] = frozenset()

    def fits(self, traits: frozenset[Trait]) -> bool:
        return self.needs <= traits and not self.never_with & traits


def sql(*statements: str) -> Do:
    return lambda source: source.sql(*statements)
