"""Catalogs of source tables: their settings, and the locations of tables, which are cached for later processes."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import pydantic
from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from mirror_assets.lakes.access import PATIENCE, Access, Located, PlainAccess, StoreAccess, access_to, store_of
from mirror_assets.lakes.errors import (
    CATALOG_LOCATION_UNFIT,
    CATALOG_TABLE_UNFIT,
    COMMITS_UNFIT,
    CREDENTIALS_NOT_VENDED,
    LOCATION_UNKNOWN,
)
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.lakes.stores import StoreConfig
from mirror_assets.process import user_cache
from mirror_assets.settings import Section, Text, Variable, is_uri, local_source

if TYPE_CHECKING:
    # It loads a part of Azure's SDK, which a file without catalogs does not need.
    from mirror_assets.lakes.unity import RenewedKeys, UnityClient, VendedKeys
    from mirror_assets.lakes.unity_delta import ManagedTable, ManagedTables

# The path of Unity Catalog's interface on a server.
API = "/api/2.1/unity-catalog"
_SCHEME = "catalog://"
# Catalogs allow more characters in names, but none of these.
_NAME = r"[^\s./`\\?#%]+"
_TABLE = re.compile(rf"{_NAME}(\.{_NAME})+")
_SPARK_DEFAULT = "spark_catalog"
_HERE = ("localhost", "127.0.0.1", "::1")


class CatalogType(str, Enum):
    """The kinds of catalogs: a Unity Catalog through its REST API, or any catalog of the Spark session."""

    UNITY = "unity"
    SPARK = "spark"


class CatalogCredentials(str, Enum):
    """The identity that reads the tables: keys issued by the catalog, or the identity of each table's store."""

    VENDED = "vended"
    STORES = "stores"


def _server(value: object) -> object:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise ValueError(f"expected the address of a Unity Catalog, such as https://host{API}, without credentials")
    path = parts.path.rstrip("/").removesuffix(API)
    return f"{parts.scheme}://{parts.netloc}{path}"


class CatalogConfig(Section):
    """A catalog: its place, and the identity that reads its tables. A token is in the environment only."""

    type: CatalogType = Field(description="unity: through its REST API; spark: any catalog of the Spark session.")
    url: Annotated[str | None, BeforeValidator(lambda value: value if value is None else _server(value))] = Field(
        default=None, description="unity: the server's address, with or without /api/2.1/unity-catalog."
    )
    name: Text | None = Field(
        default=None, description="The catalog's name on the server; null: its name here, for spark spark_catalog."
    )
    token_variable: Variable | None = Field(
        default=None, description="unity: environment variable with the token; null: no authentication."
    )
    credentials: CatalogCredentials | None = Field(
        default=None, description="Identity that reads the tables: vended (unity's default) or stores (spark's only)."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.type is CatalogType.UNITY) is (self.url is None):
            raise ValueError("`url` is a setting of `type: unity`, and required there")
        if self.type is CatalogType.SPARK and self.token_variable:
            raise ValueError("`token_variable` is not for `type: spark`: the session's settings have its identity")
        if self.type is CatalogType.SPARK and self.credentials is CatalogCredentials.VENDED:
            raise ValueError("a catalog of Spark issues no credentials here; set `stores`, or `type: unity`")
        url = urlsplit(self.url or "")
        if self.token_variable and url.scheme == "http" and url.hostname not in _HERE:
            raise ValueError("a token is sent over https only, unless the catalog is on this machine")
        return self

    @property
    def is_vending(self) -> bool:
        """Whether its tables are read with credentials that it issues."""
        return self.type is CatalogType.UNITY and self.credentials is not CatalogCredentials.STORES

    def known_as(self, label: str) -> str:
        """Return the catalog's name on its server; `label` is its name in mirror.yaml."""
        return self.name or (label if self.type is CatalogType.UNITY else _SPARK_DEFAULT)


def table_problem(catalog_type: object, table: object) -> str | None:
    """Return the mistake in a table's name in a catalog of this type, or None."""
    if not isinstance(table, str):
        return None  # reported where the setting is read
    if not _TABLE.fullmatch(table):
        return f"{table!r} can't be a table's name in a catalog; write <schema>.<table>"
    if catalog_type == CatalogType.UNITY.value and table.count(".") != 1:
        return f"{table!r} has more parts than <schema>.<table>; the catalog's own name is in `catalogs`"
    return None


@dataclass(frozen=True)
class CatalogTable:
    """A table by its name in a catalog, `<schema>.<table>`; `catalog` is the catalog's name in `catalogs`.

    As text, it is an address of this project's own; the catalog resolves the table's location.
    """

    catalog: str
    table: str

    def __str__(self) -> str:
        return f"{_SCHEME}{self.catalog}/{self.table}"

    @classmethod
    def parse(cls, text: str) -> CatalogTable | None:
        """Return the table of such an address, or None."""
        catalog, _, table = text.removeprefix(_SCHEME).partition("/")
        return cls(catalog, table) if text.startswith(_SCHEME) else None


class TableLocation(pydantic.BaseModel):
    """A table's address, its id in the catalog, and when the catalog was queried, in seconds since 1970.

    `is_managed`: the catalog has the table's newest commits.
    """

    model_config = pydantic.ConfigDict(frozen=True)

    uri: str
    table_id: str | None = None
    is_managed: bool = False
    said: float

    def is_older_than(self, seconds: float) -> bool:
        """Whether the catalog was queried longer ago, by a clock that may have been set back."""
        return not 0 <= time.time() - self.said < seconds


@dataclass
class KnownLocations:
    """The last known locations; `folder` None: the user's cache. Threads may share it.

    `newest` are the newest versions of tables by their ids, as catalogs that manage them have reported in this process.
    """

    folder: Path | None = None
    newest: dict[str, int] = field(default_factory=dict)
    _known: dict[str, TableLocation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def last(self, catalog: str, table: str) -> TableLocation | None:
        """Return the table's last known location; `catalog` identifies the catalog, for example by URL and name."""
        key = _key(catalog, table)
        with self._lock:
            if key not in self._known and (read := self._read(key)) is not None:
                self._known[key] = read
            return self._known.get(key)

    def remember(self, catalog: str, table: str, location: TableLocation) -> None:
        """Store the table's location."""
        key = _key(catalog, table)
        with self._lock:
            self._known[key] = location
            self._write(key, location)

    def _read(self, key: str) -> TableLocation | None:
        try:
            return TableLocation.model_validate_json(self._file(key).read_bytes())
        except (OSError, RuntimeError, pydantic.ValidationError):
            return None

    def _write(self, key: str, location: TableLocation) -> None:
        try:
            file = self._file(key)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            written = file.with_name(f"{file.name}.{os.getpid()}")
            written.write_text(location.model_dump_json(), encoding="utf-8")
            written.replace(file)
        except (OSError, RuntimeError):
            pass  # the next process queries the catalog again

    def _file(self, key: str) -> Path:
        return (self.folder or user_cache() / "catalogs") / f"{key}.json"


def _key(catalog: str, table: str) -> str:
    return hashlib.sha256(f"{catalog}\n{table}".encode()).hexdigest()[:32]


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

    client: UnityClient = field(compare=False)
    name: str
    table_id: str
    keys: RenewedKeys = field(repr=False, compare=False)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options, with credentials that are valid now. Raises what the catalog's client raises."""
        return {**PATIENCE, **self.store.with_keys(self.keys.current().variables).storage_options()}


def locate(
    source: str,
    catalogs: Mapping[str, CatalogConfig],
    stores: Iterable[StoreConfig],
    in_spark: InSpark | None = None,
    *,
    is_fresh: bool = False,
) -> Located:
    """Return the current location of the table at an address, or of a catalog; `is_fresh`: not a cached one.

    The commits of a table that its catalog manages are never cached. For a catalog's table, raises LOCATION_UNKNOWN,
    and what the catalog's client and `ManagedTables` raise.
    """
    named, known = CatalogTable.parse(source), tuple(stores)
    if named is None:
        return Located(source, access_to(source, known))
    catalog, commits = catalogs[named.catalog], None
    found = _location(named, catalog, in_spark, is_fresh=is_fresh)
    if found.is_managed:
        managed = _managed(named, catalog)
        if managed is not None:
            uri, commits = _address(named, managed.location), managed.commits
            found = found.model_copy(update={"uri": uri, "table_id": managed.table_id})
        else:
            found = _location(named, catalog, in_spark, is_fresh=True)
    access: Access = PlainAccess(found.uri)
    if is_uri(found.uri):
        access = _vended(named, catalog, found, known) if catalog.is_vending else access_to(found.uri, known)
    return Located(found.uri, access, found.table_id, commits)


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
    from mirror_assets.lakes.unity import UnityClient

    assert catalog.url is not None  # noqa: S101 `type: unity` has one
    return UnityClient(label, catalog.url, catalog.known_as(label), catalog.token_variable)


@cache
def _managed_tables(client: UnityClient) -> ManagedTables:
    """Return the managed tables of a catalog, one object for the process."""
    from mirror_assets.lakes.unity_delta import ManagedTables

    return ManagedTables(client)


def _managed(named: CatalogTable, catalog: CatalogConfig) -> ManagedTable | None:
    """Return the table with its commits; None if its catalog doesn't manage it any more.

    A server with several replicas may answer with an older state than before: it is asked once more. Raises
    COMMITS_UNFIT if the newest version is older again.
    """
    tables, why = _managed_tables(unity_client(named.catalog, catalog)), ""
    for _ in range(2):
        found = tables.table(named.table)
        if found is None:
            return None
        latest, before = found.commits.latest, _KNOWN.newest.get(found.table_id, -1)
        if latest >= before:
            _KNOWN.newest[found.table_id] = latest
            return found
        why = f"up to version {latest}, and has listed version {before} before"
    raise COMMITS_UNFIT(what=named.table, catalog=named.catalog, why=why)


def _location(
    named: CatalogTable, catalog: CatalogConfig, in_spark: InSpark | None, *, is_fresh: bool
) -> TableLocation:
    identity = _identity(named, catalog)
    last = _KNOWN.last(identity, named.table)
    if last is not None and not is_fresh and not last.is_older_than(_TRUSTED_SECONDS):
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
    if not table.is_delta:
        kind = " ".join(filter(None, (table.table_type.lower(), (table.data_source_format or "").lower())))
        raise CATALOG_TABLE_UNFIT(
            what=named.table, catalog=named.catalog, kind=f"a {kind or 'table of unknown format'}"
        )
    uri = _address(named, table.storage_location or "")
    return TableLocation(uri=uri, table_id=table.table_id, is_managed=table.is_catalog_managed, said=time.time())


def _address(named: CatalogTable, location: str) -> str:
    """Return a location in the spelling that both readers take. Raises CATALOG_LOCATION_UNFIT."""
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
    keys = _renewed(client, named, found.table_id, address, is_managed=found.is_managed)
    return VendedTable(store, address, stores, client, named.table, found.table_id, keys)


@cache
def _renewed(
    client: UnityClient, named: CatalogTable, table_id: str, address: LakeAddress, *, is_managed: bool
) -> RenewedKeys:
    """Return the keys of a table, one set for the process."""
    from mirror_assets.lakes.unity import RenewedKeys, VendedKeys

    def fetch() -> VendedKeys:
        if is_managed:
            vended = _managed_tables(client).credentials(named.table, table_id, address)
        else:
            vended = client.credentials(named.table, table_id)
        keys = VendedKeys.of(vended)
        if keys is not None and keys.scheme is address.scheme:
            return keys
        if not vended.kinds:
            raise CREDENTIALS_NOT_VENDED(what=named.table, catalog=named.catalog, why="its answer has none")
        kinds = _GOOGLE_UNUSABLE if "gcp_oauth_token" in vended.kinds else ", ".join(vended.kinds)
        why = f"it vends {kinds}, for a table at {address.scheme.value}://"
        raise CREDENTIALS_NOT_VENDED(what=named.table, catalog=named.catalog, why=why)

    return RenewedKeys(fetch)
