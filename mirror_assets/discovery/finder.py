"""Finds the tables of a place: `folders` lists those of a store, `catalog_tables` the names of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from mirror_assets.discovery.finding import FolderFacts, PlaceFinding, behind_listing


@dataclass(frozen=True)
class Listing:
    """The paths of what may be tables, and why a path on the way to others can't be listed, if one can't."""

    paths: tuple[str, ...]
    unlisted: Mapping[str, str] = field(default_factory=dict)


class TableFinder(Protocol):
    """Lists what may be tables at a place, and reads what each is. It keeps nothing."""

    @property
    def place(self) -> str:
        """The place as a stable text, the key of its cache."""
        ...

    def listing(self) -> Listing:
        """Return all candidates by their paths below the place's root: `sales/orders`.

        Raises SettingError for a place that can't be read, and RetryError for one that does not answer.
        """
        ...

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return what these are, in parallel where that is faster; leave out those that don't answer."""
        ...


class RulePlace(Protocol):
    """Where a rule looks, and what the paths that are found there mean."""

    def finder(self) -> TableFinder:
        """Return what lists the place."""
        ...

    def address(self, path: str) -> str:
        """Return the address of a path that was found. Raises ValueError where no address leads there."""
        ...

    def whole_path(self, path: str) -> PurePosixPath:
        """Return the path behind the place's own name, which patterns and names are made of."""
        ...


@dataclass(frozen=True)
class Look:
    """How a place is scanned: which paths are wanted, and whether all that are no table are read again.

    With `accepts_loss`, all tables that are not listed are removed.
    """

    wanted: Callable[[str], bool]
    all_others: bool = False
    accepts_loss: bool = False

    def at(self, finder: TableFinder, before: PlaceFinding | None, now: float) -> PlaceFinding:
        """Return what is there now. Raises what `TableFinder.listing` raises."""
        listing = finder.listing()
        finding = behind_listing(
            finder.place, listing.paths, listing.unlisted, before, now, accepts_loss=self.accepts_loss
        )
        wanted = {folder.path for folder in finding.folders if self.wanted(folder.path)}
        due = finding.to_read(wanted, now, all_others=self.all_others)
        return finding.with_facts(finder.read(due), now)
