"""Asks a Unity Catalog by its REST interface: a table's address, its temporary credentials, the tables of a schema.

By hand on azure-core's pipeline, which is here anyway: the official client is asynchronous, for four requests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote, urlencode

import pydantic
from azure.core import PipelineClient
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse

from mirror_assets.errors import MirrorError
from mirror_assets.storage.lake.catalog_errors import (
    catalog_denied,
    catalog_refused,
    catalog_table_unknown,
    catalog_token_missing,
    catalog_unavailable,
    credentials_not_vended,
    first_line,
)
from mirror_assets.storage.lake.unity_answers import (
    API,
    SchemaPage,
    TablePage,
    TemporaryCredentials,
    UnityErrorBody,
    UnityTable,
)

_TRIES, _SECONDS, _CONNECT_SECONDS = 3, 60, 10
_AGENT = "mirror-assets"
_FINE = 200
_BUSY = (408, 425, 429)
_Answer = TypeVar("_Answer", bound=pydantic.BaseModel)


class UnityClient:
    """One catalog of a server; threads may share it.

    Its methods raise catalog_unavailable (RetryError), and catalog_denied, catalog_table_unknown, catalog_refused and
    catalog_token_missing (SettingError).
    """

    def __init__(
        self, label: str, server: str, catalog: str, token_variable: str | None = None, tries: int = _TRIES
    ) -> None:
        """Name the catalog as mirror.yaml does (`label`) and as the server does; nothing is requested yet."""
        self.label, self.server, self.catalog, self._base = label, server, catalog, server + API
        self.token_variable, self._tries = token_variable, tries

    def token(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """Return the token that the environment has now; None for a server without sign-in."""
        if self.token_variable is None:
            return None
        token = environment.get(self.token_variable)
        if not token:
            raise catalog_token_missing(self.label, self.token_variable)
        return token

    def table(self, name: str) -> UnityTable:
        """Return the table `schema.table`."""
        path = f"/tables/{quote(f'{self.catalog}.{name}', safe='')}"
        try:
            return self._answer(UnityTable, HttpRequest("GET", self._base + path), name)
        except HttpResponseError as error:
            raise self._refusal(name, error) from error

    def credentials(self, name: str, table_id: str) -> TemporaryCredentials:
        """Return credentials to read the table, new ones at each call. Also raises credentials_not_vended."""
        request = HttpRequest(
            "POST", f"{self._base}/temporary-table-credentials", json={"table_id": table_id, "operation": "READ"}
        )
        try:
            return self._answer(TemporaryCredentials, request, name)
        except HttpResponseError as error:
            status = error.status_code or 0
            if status not in (401, 403, 404, *_BUSY) and status < 500:
                raise credentials_not_vended(name, self.label, _why(error)) from error
            raise self._refusal(name, error) from error

    def schemas(self) -> Iterator[str]:
        """Yield the names of the catalog's schemas."""
        for page in self._pages(SchemaPage, "/schemas", "its schemas", catalog_name=self.catalog):
            yield from (schema.name for schema in page.schemas)

    def tables(self, schema: str) -> Iterator[UnityTable]:
        """Yield what a schema has: tables, and views among them."""
        asked = {"catalog_name": self.catalog, "schema_name": schema}
        for page in self._pages(TablePage, "/tables", f"the tables of {schema}", **asked):
            yield from page.tables

    def _pages(self, model: type[_Answer], path: str, what: str, **query: str) -> Iterator[_Answer]:
        seen: set[str] = set()
        while True:
            try:
                page = self._answer(model, HttpRequest("GET", f"{self._base}{path}?{urlencode(query)}"), what)
            except HttpResponseError as error:
                raise self._refusal(what, error) from error
            yield page
            token = getattr(page, "next_page_token", None)
            if not token or token in seen:
                return
            seen.add(token)
            query["page_token"] = token

    def _answer(self, model: type[_Answer], request: HttpRequest, what: str) -> _Answer:
        """Send the request. Raises HttpResponseError for a refusal."""
        request.headers["User-Agent"] = _AGENT
        token = self.token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        try:
            response: HttpResponse = self._client.send_request(request)
            response.raise_for_status()
            if response.status_code != _FINE:
                raise catalog_refused(what, self.label, f"it answers with status {response.status_code}")
            return model.model_validate_json(response.read())
        except HttpResponseError:
            raise
        except AzureError as error:
            raise catalog_unavailable(what, self.label, first_line(str(error))) from error
        except pydantic.ValidationError as error:
            # Pydantic's message would quote the answer, which may hold keys.
            fields = ", ".join(".".join(map(str, detail["loc"])) or "the whole" for detail in error.errors()[:3])
            raise catalog_refused(what, self.label, f"its answer is not of the interface ({fields})") from None

    @cached_property
    def _client(self) -> PipelineClient[HttpRequest, HttpResponse]:
        retry = RetryPolicy[HttpRequest, HttpResponse](
            retry_total=self._tries, retry_status=self._tries, timeout=_SECONDS
        )
        # No policy follows redirects, for they would take the token along, and none logs.
        return PipelineClient(self.server, policies=[retry], connection_timeout=_CONNECT_SECONDS, read_timeout=_SECONDS)

    def _refusal(self, what: str, error: HttpResponseError) -> MirrorError:
        status, why = error.status_code or 0, _why(error)
        if status in _BUSY or status >= 500:
            return catalog_unavailable(what, self.label, why)
        if status in (401, 403):
            return catalog_denied(what, self.label, why)
        return (catalog_table_unknown if status == 404 else catalog_refused)(what, self.label, why)


def _why(error: HttpResponseError) -> str:
    try:
        body = UnityErrorBody.model_validate_json(error.response.text() if error.response else "")
    except (pydantic.ValidationError, ValueError):
        body = UnityErrorBody()
    return f"{body.error_code or error.status_code}: {first_line(body.message or error.reason or '')}"
