"""Access to a table by deltalake: its address for the library, and options with credentials that are valid now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mirror_assets.lakes.lake_store import LakeAddress, LakeStore
from mirror_assets.lakes.stores import StoreConfig


class Access(Protocol):
    """Access to one table; each kind of store has its own."""

    @property
    def uri(self) -> str:
        """The table's address as deltalake takes it."""
        ...

    def storage_options(self) -> Mapping[str, str]:
        """Return deltalake's options; they may change with time. Raises SettingError without credentials."""
        ...

    def elsewhere(self, uri: str) -> Access:
        """Return the access to another address, such as that of a shallow clone's files."""
        ...


@dataclass(frozen=True)
class PlainAccess:
    """Access with options that never change: by default none, as for a table of this machine."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def storage_options(self) -> Mapping[str, str]:
        """Return the options."""
        return self.options

    def elsewhere(self, uri: str) -> Access:
        """Return the access with the same options."""
        return PlainAccess(uri, self.options)


@dataclass(frozen=True)
class StagedCommit:
    """A commit file below `_delta_log/_staged_commits`, as the catalog describes it."""

    name: str
    bytes: int
    modified_ms: int


@dataclass(frozen=True)
class CatalogCommits:
    """The response of a catalog that decides which commits of a table count (Delta's feature `catalogManaged`).

    `latest` is the table's newest version. `staged` are the commit files of the newest versions, without a gap up to
    `latest`. Earlier versions are published in the log, and so may these be: then the catalog's file counts.
    """

    latest: int
    staged: Mapping[int, StagedCommit]

    @property
    def published(self) -> int:
        """The newest version that the log has for certain; -1 for none."""
        return min(self.staged, default=self.latest + 1) - 1


@dataclass(frozen=True)
class Located:
    """A table's address as Spark takes it, and its access by deltalake.

    `table_id` is the id of the table in its catalog, which differs from that in the Delta log. `commits` is None for a
    table whose log alone decides which commits count.
    """

    uri: str
    access: Access = field(compare=False)
    table_id: str | None = None
    commits: CatalogCommits | None = field(default=None, compare=False)


class Locate(Protocol):
    """Asks a catalog for the current address of a table, and for its newest commits if the catalog manages them."""

    def __call__(self, *, is_fresh: bool = False) -> Located:
        """Return the location; `is_fresh`: not from a cache."""
        ...


# deltalake would wait three minutes for an unreachable host; callers retry after a pause.
PATIENCE = {"retry_timeout": "30s"}


@dataclass(frozen=True)
class StoreAccess:
    """The access to a table of a store; other addresses are in any of `stores`."""

    store: LakeStore
    address: LakeAddress
    stores: tuple[StoreConfig, ...] = field(repr=False, compare=False)

    @property
    def uri(self) -> str:
        """The address as deltalake takes it."""
        return self.store.delta_uri(self.address)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises SettingError without any."""
        return {**PATIENCE, **self.store.storage_options()}

    def elsewhere(self, uri: str) -> Access:
        """Return the access to another address."""
        return access_to(uri, self.stores)


def access_to(uri: str, stores: Iterable[StoreConfig]) -> Access:
    """Return the access to an address, with the identity of its store; local paths need none."""
    known = tuple(stores)
    store = store_of(uri, known)
    if store is None:
        return PlainAccess(uri)
    return StoreAccess(store, LakeAddress.parse(uri), known)


def store_of(uri: str, stores: Iterable[StoreConfig]) -> LakeStore | None:
    """Return the store with the longest root that contains the address, or else one with the default identity.

    Returns None for a path of this machine, and for an address that only Databricks can resolve.
    """
    try:
        address = LakeAddress.parse(uri)
    except ValueError:
        return None
    holding = [one for one in stores if one.address is not None and one.address.holds(address)]
    if holding:
        return max(holding, key=lambda one: len(one.root)).store
    return StoreConfig(root=LakeAddress(address.scheme, address.authority).uri).store
