"""Finds tables by their names in a Unity Catalog: those of the schemas whose name is like a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from mirror_assets.discovery.finder import Listing
from mirror_assets.discovery.finding import FolderFacts
from mirror_assets.discovery.read_facts import read_facts
from mirror_assets.errors import SettingError
from mirror_assets.source.access import Access

_WILD = frozenset("*?[")


class Named(Protocol):
    """What a catalog lists in a schema."""

    @property
    def name(self) -> str:
        """Its name, without the schema's."""
        ...


class CatalogListing(Protocol):
    """A catalog that lists its tables. Its methods raise SettingError, and RetryError when it does not answer."""

    def schemas(self) -> Iterable[str]:
        """Return the names of its schemas."""
        ...

    def tables(self, schema: str) -> Iterable[Named]:
        """Return what a schema has: tables, and views among them."""
        ...


@dataclass(frozen=True)
class CatalogFinder:
    """What a catalog has in schemas like `pattern`, as paths `<schema>/<name>`: views too, which are no tables.

    `named` says which catalog of all it is. `access` finds the way to an address, and `address` returns that of a path.
    """

    named: str
    catalog: CatalogListing
    pattern: str
    access: Callable[[str], Access]
    address: Callable[[str], str]

    @property
    def place(self) -> str:
        """The catalog and the pattern."""
        return f"{self.named}, schema {self.pattern}"

    def listing(self) -> Listing:
        """Return the names, by one request for each page of the schemas, and of each schema's tables.

        A schema that is not shown to this token stops no other. Raises what the catalog raises.
        """
        if not _WILD & set(self.pattern):
            return Listing(tuple(self._paths(self.pattern)))
        paths, unlisted = list[str](), dict[str, str]()
        for schema in self.catalog.schemas():
            if not fnmatchcase(schema, self.pattern):
                continue
            try:
                paths += self._paths(schema)
            except SettingError as error:
                unlisted[schema] = error.what
        return Listing(tuple(sorted(paths)), unlisted)

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return what these are, by their logs; what the catalog or a store does not answer for is left out."""
        return read_facts(paths, lambda path: self.access(self.address(path)), remote=True)

    def _paths(self, schema: str) -> Iterator[str]:
        yield from (f"{schema}/{table.name}" for table in self.catalog.tables(schema))
