"""Queries a Unity Catalog by its REST interface: a table's address, its temporary credentials, the tables of a schema.

It uses azure-core's pipeline, which is installed anyway: the official client is asynchronous, for four requests.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote, urlencode

import pydantic
from azure.core import PipelineClient
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from mirror_assets.errors import ErrorRow, MirrorError
from mirror_assets.lakes.azure import SAS_TOKEN
from mirror_assets.lakes.catalogs import API
from mirror_assets.lakes.errors import (
    CATALOG_DENIED,
    CATALOG_REFUSED,
    CATALOG_TABLE_UNKNOWN,
    CATALOG_TOKEN_MISSING,
    CATALOG_UNAVAILABLE,
    CREDENTIALS_NOT_VENDED,
    first_line,
)
from mirror_assets.lakes.lake_store import Scheme
from mirror_assets.lakes.s3 import KEY, SECRET, TOKEN

# A table whose newest commits the catalog has, has one of these properties.
_CATALOG_MANAGED = tuple(f"delta.feature.{name}" for name in ("catalogManaged", "catalogOwned", "catalogOwned-preview"))


def has_managed_commits(properties: Mapping[str, str] | None) -> bool:
    """Whether the catalog, not the log, determines which commits of a table with these properties count."""
    return any((properties or {}).get(name) == "supported" for name in _CATALOG_MANAGED)


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class PrimaryKey(_Answer):
    """The columns of a primary key, in order. Databricks declares keys, and enforces none."""

    child_columns: tuple[str, ...] = ()


class UnityConstraint(_Answer):
    """A constraint of a table; other kinds are left out."""

    primary_key_constraint: PrimaryKey | None = None


class UnityTable(_Answer):
    """A table, or a view, which is listed among tables and has neither format nor location."""

    name: str
    table_type: str = ""
    data_source_format: str | None = None
    storage_location: str | None = None
    table_id: str | None = None
    properties: dict[str, str] | None = None
    table_constraints: tuple[UnityConstraint, ...] | None = None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key; none if none is declared."""
        declared = (one.primary_key_constraint for one in self.table_constraints or ())
        return next((key.child_columns for key in declared if key is not None), ())

    @property
    def is_delta(self) -> bool:
        """Whether it is a Delta table in a store."""
        return (self.data_source_format or "").upper() == "DELTA" and bool(self.storage_location)

    @property
    def is_catalog_managed(self) -> bool:
        """Whether the catalog, not the log, determines which commits count."""
        return has_managed_commits(self.properties)


class AwsKeys(_Answer):
    """Keys for S3."""

    access_key_id: str
    secret_access_key: str = Field(repr=False)
    session_token: str | None = Field(default=None, repr=False)


class AzureSas(_Answer):
    """A shared access signature for a folder of a container."""

    sas_token: str = Field(repr=False)


class TemporaryCredentials(_Answer):
    """One kind of credential, and its expiry in ms since 1970; `kinds` also has the kinds without a field here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    aws_temp_credentials: AwsKeys | None = None
    azure_user_delegation_sas: AzureSas | None = None
    expiration_time: int | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the vended credentials' fields in the answer; never a value."""
        named = ("aws_temp_credentials", "azure_user_delegation_sas")
        known = tuple(name for name in named if getattr(self, name) is not None)
        return known + tuple(name for name, value in (self.model_extra or {}).items() if isinstance(value, dict))

    def __repr__(self) -> str:
        return f"TemporaryCredentials({', '.join(self.kinds)})"

    __str__ = __repr__


# Keys are renewed this long before they expire, or after half of their lifetime, if that is later.
_RENEWED_BEFORE_SECONDS = 300.0
# The lifetime of keys without an expiry: the shortest that AWS and Azure allow.
_DEFAULT_SECONDS = 900.0


@dataclass(frozen=True)
class VendedKeys:
    """Keys for one kind of store, by the names of the environment variables that its SDKs read.

    `ends` is their expiry in seconds since 1970; None if the catalog does not report it.
    """

    scheme: Scheme
    variables: Mapping[str, str] = field(repr=False)
    ends: float | None = None

    @classmethod
    def of(cls, vended: TemporaryCredentials) -> VendedKeys | None:
        """Return the keys in an answer; None if it has none that both readers can use."""
        ends = None if vended.expiration_time is None else vended.expiration_time / 1000
        if (aws := vended.aws_temp_credentials) is not None:
            named = {KEY: aws.access_key_id, SECRET: aws.secret_access_key, TOKEN: aws.session_token or ""}
            return cls(Scheme.S3, named, ends)
        if (azure := vended.azure_user_delegation_sas) is not None:
            return cls(Scheme.AZURE, {SAS_TOKEN: azure.sas_token}, ends)
        return None


class RenewedKeys:
    """The keys of one table, fetched on use; threads may share them, and one of them fetches."""

    def __init__(self, fetch: Callable[[], VendedKeys], now: Callable[[], float] = time.time) -> None:
        """Nothing is fetched yet."""
        self._fetch, self._now, self._lock = fetch, now, threading.Lock()
        self._keys: VendedKeys | None = None
        self._renew_at = 0.0

    def current(self) -> VendedKeys:
        """Return keys that are valid now and for a while. Raises the errors of the fetch."""
        with self._lock:
            if self._keys is None or self._now() >= self._renew_at:
                began, self._keys = self._now(), self._fetch()
                left = _DEFAULT_SECONDS if self._keys.ends is None else self._keys.ends - began
                self._renew_at = began + max(left - _RENEWED_BEFORE_SECONDS, left / 2)
            return self._keys


class UnitySchema(_Answer):
    """A schema of the catalog."""

    name: str


class UnityPage(_Answer):
    """A page of schemas or tables."""

    schemas: tuple[UnitySchema, ...] = ()
    tables: tuple[UnityTable, ...] = ()
    next_page_token: str | None = None


class DeltaErrorBody(_Answer):
    """The error in a response of the Delta API."""

    type: str = ""
    message: str = ""


class UnityErrorBody(_Answer):
    """The body of an error response, of the table API or the Delta API."""

    error_code: str = ""
    message: str = ""
    error: DeltaErrorBody = DeltaErrorBody()


_TRIES, _SECONDS, _CONNECT_SECONDS = 3, 60, 10
_Model = TypeVar("_Model", bound=pydantic.BaseModel)
_Refused = ErrorRow[MirrorError]


class UnityClient:
    """One catalog of a server; threads may share it.

    Its methods raise CATALOG_UNAVAILABLE, CATALOG_DENIED, CATALOG_TABLE_UNKNOWN, CATALOG_REFUSED and
    CATALOG_TOKEN_MISSING.
    """

    def __init__(
        self, label: str, server: str, catalog: str, token_variable: str | None = None, tries: int = _TRIES
    ) -> None:
        """Name the catalog as mirror.yaml does (`label`) and as the server does; nothing is requested yet."""
        self.label, self.server, self.catalog, self.base = label, server, catalog, server + API
        self.token_variable, self._tries = token_variable, tries

    def token(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """Return the token that the environment has now; None for a server without authentication."""
        if self.token_variable is None:
            return None
        token = environment.get(self.token_variable)
        if not token:
            raise CATALOG_TOKEN_MISSING(catalog=self.label, variable=self.token_variable)
        return token

    def table(self, name: str) -> UnityTable:
        """Return the table `schema.table`."""
        path = f"/tables/{quote(f'{self.catalog}.{name}', safe='')}"
        return self.answer(UnityTable, HttpRequest("GET", self.base + path), name)

    def credentials(self, name: str, table_id: str) -> TemporaryCredentials:
        """Return credentials to read the table, new ones at each call. Also raises CREDENTIALS_NOT_VENDED."""
        body = {"table_id": table_id, "operation": "READ"}
        request = HttpRequest("POST", f"{self.base}/temporary-table-credentials", json=body)
        return self.answer(TemporaryCredentials, request, name, CREDENTIALS_NOT_VENDED)

    def schemas(self) -> Iterator[str]:
        """Yield the names of the catalog's schemas."""
        for page in self._pages("/schemas", "its schemas", catalog_name=self.catalog):
            yield from (schema.name for schema in page.schemas)

    def tables(self, schema: str) -> Iterator[UnityTable]:
        """Yield the tables and views of a schema."""
        names = {"catalog_name": self.catalog, "schema_name": schema}
        for page in self._pages("/tables", f"the tables of {schema}", **names):
            yield from page.tables

    def _pages(self, path: str, what: str, **query: str) -> Iterator[UnityPage]:
        seen: set[str] = set()
        while True:
            page = self.answer(UnityPage, HttpRequest("GET", f"{self.base}{path}?{urlencode(query)}"), what)
            yield page
            token = page.next_page_token
            if not token or token in seen:
                return
            seen.add(token)
            query["page_token"] = token

    def answer(
        self, model: type[_Model], request: HttpRequest, what: str, refused: _Refused = CATALOG_REFUSED
    ) -> _Model:
        """Send the request and return its answer; `refused` is the error for a refusal without another meaning."""
        request.headers["User-Agent"] = "mirror-assets"
        token = self.token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        try:
            response: HttpResponse = self._client.send_request(request)
            response.raise_for_status()
            if response.status_code != 200:
                raise CATALOG_REFUSED(
                    what=what, catalog=self.label, why=f"it answers with status {response.status_code}"
                )
            return model.model_validate_json(response.read())
        except HttpResponseError as error:
            raise _meaning(error.status_code or 0, refused)(
                what=what, catalog=self.label, why=_reason(error)
            ) from error
        except AzureError as error:
            raise CATALOG_UNAVAILABLE(what=what, catalog=self.label, why=first_line(str(error))) from error
        except pydantic.ValidationError as error:
            # Pydantic's message would quote the answer, which may contain keys.
            fields = ", ".join(".".join(map(str, detail["loc"])) or "the whole" for detail in error.errors()[:3])
            raise CATALOG_REFUSED(
                what=what, catalog=self.label, why=f"its answer is not of the interface ({fields})"
            ) from None

    @cached_property
    def _client(self) -> PipelineClient[HttpRequest, HttpResponse]:
        retry = RetryPolicy[HttpRequest, HttpResponse](
            retry_total=self._tries, retry_status=self._tries, timeout=_SECONDS
        )
        # No policy follows redirects, which would send the token to another server, and none logs.
        return PipelineClient(self.server, policies=[retry], connection_timeout=_CONNECT_SECONDS, read_timeout=_SECONDS)


def _meaning(status: int, refused: _Refused) -> _Refused:
    if status in (408, 425, 429) or status >= 500:
        return CATALOG_UNAVAILABLE
    if status in (401, 403):
        return CATALOG_DENIED
    return CATALOG_TABLE_UNKNOWN if status == 404 else refused


def _reason(error: HttpResponseError) -> str:
    try:
        body = UnityErrorBody.model_validate_json(error.response.text() if error.response else "")
    except (pydantic.ValidationError, ValueError):
        body = UnityErrorBody()
    code = body.error_code or body.error.type or error.status_code
    return f"{code}: {first_line(body.message or body.error.message or error.reason or '')}"
