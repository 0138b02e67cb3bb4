"""The access to each source: the store of its address, for both readers of Delta tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mirror_assets.config.stores import StoreConfig
from mirror_assets.source.access import Access, PlainAccess
from mirror_assets.storage.lake.lake_address import LakeAddress
from mirror_assets.storage.lake.lake_store import LakeStore

# deltalake would wait three minutes for an unreachable host; callers retry after a pause.
PATIENCE = {"retry_timeout": "30s"}


@dataclass(frozen=True)
class StoreAccess:
    """The access to a table of a store; `resolve` returns the access to another address."""

    store: LakeStore
    address: LakeAddress
    resolve: Callable[[str], Access] = field(repr=False)

    @property
    def uri(self) -> str:
        """The address as deltalake takes it."""
        return self.store.delta_uri(self.address)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises SettingError without any."""
        return {**PATIENCE, **self.store.storage_options()}

    def elsewhere(self, uri: str) -> Access:
        """Return the access to another address."""
        return self.resolve(uri)


def access_to(uri: str, stores: Iterable[StoreConfig]) -> Access:
    """Return the access to an address, with the identity of its store; local paths need none."""
    known = tuple(stores)
    store = store_of(uri, known)
    if store is None:
        return PlainAccess(uri)
    return StoreAccess(store, LakeAddress.parse(uri), lambda other: access_to(other, known))


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
