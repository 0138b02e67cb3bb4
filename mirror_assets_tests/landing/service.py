"""What the service does with landing files that it has applied, as a search may let it happen at any time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from mirror_assets.landing.names import PROCESSED, landing_name
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.landing.zones import Action
from mirror_assets_tests.zones.memory import MemoryStore


@dataclass(frozen=True)
class Remove:
    """A file of the table folder is deleted."""

    path: str

    def perform(self, store: MemoryStore) -> None:
        """Delete it."""
        store.delete(self.path)


@dataclass(frozen=True)
class PutAside:
    """A landing file goes to `_ProcessedFiles`."""

    number: int

    def perform(self, store: MemoryStore) -> None:
        """Move it."""
        path = TABLE.landing_file(self.number)
        store.create(f"{TABLE.folder}/{PROCESSED}/{landing_name(self.number)}", store.read(path, 1 << 20).data)
        store.delete(path)


# What may happen next, by the numbers that stand in the table folder.
Service = Callable[[Collection[int]], list[Action]]


def keeps_the_last(numbers: Collection[int]) -> list[Action]:
    """What Microsoft documents (`landing-zone` §4.14): any file may go but the last."""
    return [Remove(TABLE.landing_file(number)) for number in sorted(numbers)[:-1]]


def puts_all_aside(numbers: Collection[int]) -> list[Action]:
    """Any file may move to `_ProcessedFiles`, where a listing still finds it."""
    return [PutAside(number) for number in sorted(numbers)]


def takes_all(numbers: Collection[int]) -> list[Action]:
    """Even the last file goes for good, so that no listing tells what has landed."""
    return [Remove(TABLE.landing_file(number)) for number in sorted(numbers)]
