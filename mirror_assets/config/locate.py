"""Resolves the locations of source tables: an address, or the location that a catalog reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from mirror_assets.config.catalogs import CatalogConfig, CatalogTable, CatalogType
from mirror_assets.config.setting_values import is_uri, local_source
from mirror_assets.config.store_access import PATIENCE, StoreAccess, access_to, store_of
from mirror_assets.config.stores import StoreConfig
from mirror_assets.source.access import Access, Located, PlainAccess
from mirror_assets.source.errors import CATALOG_MANAGED, LOCATION_UNKNOWN
from mirror_assets.storage.lake.catalog_errors import (
    CATALOG_LOCATION_UNFIT,
    CATALOG_TABLE_UNFIT,
    CREDENTIALS_NOT_VENDED,
)
from mirror_assets.storage.lake.lake_address import LakeAddress, Scheme
from mirror_assets.storage.lake.locations import KnownLocations, TableLocation
from mirror_assets.storage.lake.vended_keys import RenewedKeys, VendedKeys, vended_options

if TYPE_CHECKING:
    # It loads a part of Azure's SDK, which a file without catalogs does not need.
    from mirror_assets.storage.lake.unity_client import UnityClient

# A location is cached this long.
_TRUSTED_SECONDS = 120.0
# Without Spark, a location from Spark's catalog is cached this long.
_TRUSTED_WITHOUT_SPARK_SECONDS = 3600.0
_GOOGLE_UNUSABLE = "a Google token, which deltalake doesn't support"

# Returns the address of a table of a Spark session: the catalog's name in Spark, and the table's there.
InSpark = Callable[[str, str], str]


@dataclass(frozen=True)
class VendedTable(StoreAccess):
    """The access to a table with credentials that its catalog issues, for deltalake and Spark."""

    resolve: Callable[[str], Access] = field(repr=False, compare=False)
    client: UnityClient = field(compare=False)
    name: str
    table_id: str
    keys: RenewedKeys = field(repr=False, compare=False)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises what the catalog's client raises."""
        return {**PATIENCE, **vended_options(self.store, self.keys.current())}


def locate(
    source: str,
    catalogs: Mapping[str, CatalogConfig],
    stores: Iterable[StoreConfig],
    in_spark: InSpark | None = None,
) -> Located:
    """Return the current location of the table at an address, or of a catalog.

    For a catalog's table, raises LocationUnknown, catalog_managed, and what the catalog's client raises.
    """
    named, known = CatalogTable.parse(source), tuple(stores)
    if named is None:
        return Located(source, access_to(source, known))
    catalog = catalogs[named.catalog]
    found = _location(named, catalog, in_spark)
    if not is_uri(found.uri):
        return Located(found.uri, PlainAccess(found.uri), found.table_id)
    if catalog.is_vending:
        return Located(found.uri, _vended(named, catalog, found, known), found.table_id)
    return Located(found.uri, access_to(found.uri, known), found.table_id)


def last_address(source: str, catalogs: Mapping[str, CatalogConfig]) -> str | None:
    """Return the address of a source; for a catalog's table the cached one, however old, or None."""
    named = CatalogTable.parse(source)
    if named is None:
        return source
    found = _KNOWN.last(_identity(named, catalogs[named.catalog]), named.table)
    return found.uri if found else None


_KNOWN = KnownLocations()


@cache
def unity_client(label: str, catalog: CatalogConfig) -> UnityClient:
    """Return the client of a catalog of `type: unity`, one for the process."""
    from mirror_assets.storage.lake.unity_client import UnityClient

    assert catalog.url is not None  # noqa: S101 `type: unity` has one
    return UnityClient(label, catalog.url, catalog.known_as(label), catalog.token_variable)


def _location(named: CatalogTable, catalog: CatalogConfig, in_spark: InSpark | None) -> TableLocation:
    identity = _identity(named, catalog)
    last = _KNOWN.last(identity, named.table)
    if last is not None and not last.is_older_than(_TRUSTED_SECONDS):
        return last
    if catalog.type is CatalogType.UNITY:
        found = _in_unity(named, catalog)
    elif in_spark is not None:
        uri = in_spark(catalog.known_as(named.catalog), named.table)
        found = TableLocation(uri=_address(named, uri), said=time.time())
    elif last is not None and not last.is_older_than(_TRUSTED_WITHOUT_SPARK_SECONDS):
        return last
    else:
        raise LOCATION_UNKNOWN(table=named.table, catalog=named.catalog)
    _KNOWN.remember(identity, named.table, found)
    return found


def _in_unity(named: CatalogTable, catalog: CatalogConfig) -> TableLocation:
    table = unity_client(named.catalog, catalog).table(named.table)
    if table.is_catalog_managed:
        raise CATALOG_MANAGED(uri=f"{named.table} in the catalog {named.catalog}")
    if not table.is_delta:
        kind = " ".join(filter(None, (table.table_type.lower(), (table.data_source_format or "").lower())))
        raise CATALOG_TABLE_UNFIT(
            what=named.table, catalog=named.catalog, kind=f"a {kind or 'table of unknown format'}"
        )
    uri = _address(named, table.storage_location or "")
    return TableLocation(uri=uri, table_id=table.table_id, said=time.time())


def _address(named: CatalogTable, location: str) -> str:
    """Return a location in the spelling that both readers take. Raises catalog_location_unfit."""
    try:
        local = str(local_source(location))
        return LakeAddress.parse(local).uri if is_uri(local) else local.rstrip("/")
    except ValueError as error:
        raise CATALOG_LOCATION_UNFIT(what=named.table, catalog=named.catalog, why=str(error)) from error


def _identity(named: CatalogTable, catalog: CatalogConfig) -> str:
    return f"{catalog.type.value} {catalog.url} {catalog.known_as(named.catalog)}"


def _vended(
    named: CatalogTable, catalog: CatalogConfig, found: TableLocation, stores: tuple[StoreConfig, ...]
) -> VendedTable:
    store, address = store_of(found.uri, stores), LakeAddress.parse(found.uri)
    if found.table_id is None or store is None:
        raise CREDENTIALS_NOT_VENDED(what=named.table, catalog=named.catalog, why="the catalog has no id for it")
    client = unity_client(named.catalog, catalog)
    keys = _renewed(client, named, found.table_id, address.scheme)
    return VendedTable(
        store, address, lambda other: access_to(other, stores), client, named.table, found.table_id, keys
    )


@cache
def _renewed(client: UnityClient, named: CatalogTable, table_id: str, scheme: Scheme) -> RenewedKeys:
    """Return the keys of a table, one set for the process."""

    def fetch() -> VendedKeys:
        vended = client.credentials(named.table, table_id)
        keys = VendedKeys.of(vended)
        if keys is not None and keys.scheme is scheme:
            return keys
        if not vended.kinds:
            raise CREDENTIALS_NOT_VENDED(what=named.table, catalog=named.catalog, why="its answer has none")
        kinds = _GOOGLE_UNUSABLE if "gcp_oauth_token" in vended.kinds else ", ".join(vended.kinds)
        why = f"it vends {kinds}, for a table at {scheme.value}://"
        raise CREDENTIALS_NOT_VENDED(what=named.table, catalog=named.catalog, why=why)

    return RenewedKeys(fetch)
