"""Finds tables as folders: those below a root whose path is like a pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_assets.discovery.finder import Listing
from mirror_assets.discovery.finding import FolderFacts
from mirror_assets.discovery.read_facts import Brief, read_facts
from mirror_assets.source.access import Access
from mirror_assets.source.find_tables import match_folders


@dataclass(frozen=True)
class FolderFinder:
    """The folders below `root` at a path like `pattern`, such as `*` or `sales/*`.

    `access` finds the way to an address, and `address` puts a path behind the root.
    """

    root: str
    pattern: str
    access: Callable[[str], Access]
    address: Callable[[str], str]

    @property
    def place(self) -> str:
        """The root and the pattern."""
        return f"{self.root} {self.pattern}"

    def listing(self) -> Listing:
        """Return the folders that match, by one listing for each folder on the way.

        Raises SourceUnreadable and SourceUnavailable.
        """
        found = match_folders(Brief(self.access(self.root)), self.pattern)
        return Listing(found.paths, {folder.path: folder.hindrance or "" for folder in found.unlisted})

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return what the folders are; one whose store does not answer is left out."""
        return read_facts(paths, lambda path: self.access(self.address(path)), remote="://" in self.root)
