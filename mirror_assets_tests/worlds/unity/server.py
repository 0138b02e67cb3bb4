"""A Unity Catalog on this machine that answers as its OpenAPI says, with faults and a log of requests."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
from aiohttp import web

from mirror_assets_tests.worlds.onelake.tls import LoopbackServer

API = "/api/2.1/unity-catalog"
TOKEN = "dapi-0123456789abcdef"  # noqa: S105 it is good here only
_PAGE = 2
_OPERATIONS = ("UNKNOWN_TABLE_OPERATION", "READ", "READ_WRITE")
# The models of PyPI's `unitycatalog-client` 0.7.0 as JSON schemas, by Pydantic's `model_json_schema`, without further
# fields; the type of a column is free. The package itself needs older versions of aiohttp and pydantic.
_MODELS = json.loads(Path(__file__).with_name("models.json").read_text())
_MANAGED = "delta.feature.catalogManaged"


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    document: Any

    @classmethod
    def refusal(cls, status: int, code: str, message: str) -> Answer:
        details = [{"@type": "google.rpc.ErrorInfo", "reason": code}]
        return cls(status, {"error_code": code, "message": message, "details": details})


@dataclass(frozen=True)
class Asked:
    """A request: its method and path below the interface, and the table's id if credentials were asked for."""

    method: str
    path: str
    table_id: str | None = None
    agent: str = ""


@dataclass(frozen=True)
class Ratified:
    """A commit that the catalog has ratified, by its staged file."""

    version: int
    timestamp: int
    file_name: str
    file_size: int
    modified_ms: int

    @property
    def document(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "timestamp": self.timestamp,
            "file_name": self.file_name,
            "file_size": self.file_size,
            "file_modification_timestamp": self.modified_ms,
        }


@dataclass
class Table:
    """A table as the catalog keeps it; `ratified` are the commits that it doesn't know to be published."""

    full_name: str
    location: str | None
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    data_format: str | None = "DELTA"
    table_type: str = "EXTERNAL"
    properties: dict[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    ratified: tuple[Ratified, ...] = ()
    latest: int | None = None

    @property
    def loaded(self) -> dict[str, Any]:
        """The response of the Delta API; `commits` and `latest-table-version` only for a managed table."""
        is_managed = self.properties.get(_MANAGED) == "supported"
        commits = sorted(self.ratified, key=lambda commit: -commit.version)
        own = {
            "commits": [{name.replace("_", "-"): value for name, value in one.document.items()} for one in commits],
            "latest-table-version": self.latest,
        }
        metadata = {
            "etag": str(self.latest),
            "table-type": self.table_type,
            "table-uuid": self.table_id,
            "location": self.location,
            "created-time": 1,
            "updated-time": 1,
            "columns": {"type": "struct", "fields": []},
            "properties": self.properties,
        }
        return {"metadata": metadata, **(own if is_managed else {})}

    @property
    def info(self) -> dict[str, Any]:
        catalog, schema, name = self.full_name.split(".")
        return {
            "name": name,
            "catalog_name": catalog,
            "schema_name": schema,
            "table_type": self.table_type,
            "data_source_format": self.data_format,
            "columns": [{"name": "id", "type_text": "int", "type_name": "INT", "position": 0, "nullable": True}],
            "storage_location": self.location,
            "properties": self.properties,
            "table_id": self.table_id,
            "table_constraints": [
                {"foreign_key_constraint": {"name": "fk", "child_columns": ["x"], "parent_columns": ["y"]}},
                {"primary_key_constraint": {"name": "pk", "child_columns": list(self.primary_key)}},
            ]
            if self.primary_key
            else None,
            "created_at": 1,
            "owner": None,
        }


class LoopbackUnity(LoopbackServer):
    """The server; `with` starts and stops it. `vend` makes TemporaryCredentials for a table.

    `delta_versions` are those of its Delta API; a server without it has the older API of commits only. `alter` changes
    the responses about a table's commits. `slow` is how long each response takes, in seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Table] = {}
        self.log: list[Asked] = []
        self.faults: list[Answer | None] = []
        self.reset()

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_route("*", "/{path:.*}", self._handle)
        return made

    def add(self, full_name: str, location: str | None, properties: dict[str, str] | None = None) -> Table:
        table = self.tables[full_name] = Table(full_name, location, properties=properties or {})
        return table

    def reset(self) -> None:
        self.tables.clear()
        self.faults.clear()
        self.log.clear()
        self.vend: Callable[[Table], dict[str, Any]] = lambda _: {}
        self.delta_versions: tuple[str, ...] = ("1.0",)
        self.alter: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document
        self.token, self.slow = TOKEN, 0.0

    def vended(self, table: Table) -> list[Asked]:
        return [asked for asked in self.log if asked.table_id == table.table_id]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path = request.path.removeprefix(API)
        asked_for = json.loads(body).get("table_id") if path == "/temporary-table-credentials" else None
        self.log.append(Asked(request.method, path, asked_for, request.headers.get("User-Agent", "")))
        await asyncio.sleep(self.slow)
        if self.faults:
            fault = self.faults.pop(0)
            if fault is None:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return _response(fault)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return _response(Answer.refusal(401, "UNAUTHENTICATED", "The token is not good here."))
        # Vending asks another server on this machine: not in the loop.
        answer = self._by_delta if path.startswith("/delta/") else self._answer
        return _response(await asyncio.to_thread(answer, request, path, body))

    def _answer(self, request: web.Request, path: str, body: bytes) -> Answer:
        if not request.path.startswith(API):
            return Answer.refusal(404, "ENDPOINT_NOT_FOUND", f"No such endpoint: {request.path}")
        if request.method == "GET" and path.startswith("/tables/"):
            table = self.tables.get(path.removeprefix("/tables/"))
            missing = f"Table not found: {path.removeprefix('/tables/')}"
            return Answer(200, table.info) if table else Answer.refusal(404, "TABLE_NOT_FOUND", missing)
        if request.method == "GET" and path == "/tables":
            return self._listed(dict(request.query))
        if request.method == "GET" and path == "/schemas":
            names = sorted({tuple(name.split(".")[:2]) for name in self.tables})
            found = [{"name": schema} for catalog, schema in names if catalog == request.query["catalog_name"]]
            return _page("schemas", found, request.query.get("page_token"))
        if request.method == "POST" and path == "/temporary-table-credentials":
            return self._credentials(json.loads(body))
        return Answer.refusal(404, "ENDPOINT_NOT_FOUND", f"No such endpoint: {path}")

    def _listed(self, query: dict[str, str]) -> Answer:
        if not {"catalog_name", "schema_name"} <= query.keys():
            return Answer.refusal(400, "INVALID_ARGUMENT", "catalog_name and schema_name are required")
        of = f"{query['catalog_name']}.{query['schema_name']}."
        found = [table.info for name, table in sorted(self.tables.items()) if name.startswith(of)]
        return _page("tables", found, query.get("page_token"))

    def _by_delta(self, request: web.Request, path: str, body: bytes) -> Answer:
        """Answer by the Delta API, or by the API of commits that came before it."""
        query, has_api = dict(request.query), bool(self.delta_versions)
        match path.split("/")[2:]:
            case ["preview", "commits"] if not has_api:
                return self._preview(json.loads(body))
            case ["v1", "config"] if has_api and query.keys() == {"catalog", "protocol-versions"}:
                return self._config(query["protocol-versions"])
            case ["v1", "catalogs", catalog, "schemas", schema, "tables", name, *rest] if has_api:
                table = self.tables.get(f"{catalog}.{schema}.{name}")
                if table is None:
                    return delta_refusal(404, "NoSuchTableException", f"Table does not exist: {schema}.{name}")
                if not rest and not query:
                    return _modelled("DeltaLoadTableResponse", self.alter(table.loaded))
                if rest == ["credentials"] and query == {"operation": "READ"}:
                    return _modelled("DeltaCredentialsResponse", {"storage-credentials": self._for_prefixes(table)})
        return delta_refusal(404, "NotFoundException", f"No such endpoint: {path}")

    def _config(self, versions: str) -> Answer:
        known = set(self.delta_versions) & set(versions.split(","))
        if not known:
            text = f"No common protocol version among {sorted(self.delta_versions)}"
            return delta_refusal(400, "InvalidParameterValueException", text)
        return _modelled("DeltaCatalogConfig", {"endpoints": [], "protocol-version": max(known)})

    def _for_prefixes(self, table: Table) -> list[dict[str, Any]]:
        """The vended keys of the table as credentials for its folder, after some for the folder above."""
        vended = self.vend(table)
        keys = {f"s3.{name.replace('_', '-')}": value for name, value in vended["aws_temp_credentials"].items()}
        assert table.location is not None
        bad = dict.fromkeys(keys, "void")
        return [
            {"prefix": prefix, "operation": "READ", "config": config, "expiration-time-ms": vended["expiration_time"]}
            for prefix, config in ((table.location.rpartition("/")[0], bad), (table.location, keys))
        ]

    def _preview(self, request: dict[str, Any]) -> Answer:
        """A page of commits, in no order."""
        jsonschema.validate(request, _MODELS["DeltaGetCommits"])
        table = next((table for table in self.tables.values() if table.table_id == request["table_id"]), None)
        if table is None or table.location != request["table_uri"]:
            return Answer.refusal(404, "TABLE_NOT_FOUND", f"Table not found: {request}")
        found = sorted(table.ratified, key=lambda commit: commit.version)
        page = [commit.document for commit in found if commit.version >= request["start_version"]][:_PAGE]
        document = {"commits": page[::-1], "latest_table_version": table.latest}
        return _modelled("DeltaGetCommitsResponse", self.alter(document))

    def _credentials(self, request: dict[str, str]) -> Answer:
        if request.get("operation") not in _OPERATIONS or request.keys() - {"table_id", "operation"}:
            return Answer.refusal(400, "INVALID_ARGUMENT", f"Invalid request: {sorted(request)}")
        table = next((table for table in self.tables.values() if table.table_id == request["table_id"]), None)
        if table is None:
            return Answer.refusal(404, "TABLE_NOT_FOUND", f"Table not found: {request['table_id']}")
        return Answer(200, self.vend(table))


def _modelled(model: str, document: dict[str, Any]) -> Answer:
    jsonschema.validate(document, _MODELS[model])
    return Answer(200, document)


def delta_refusal(status: int, kind: str, message: str) -> Answer:
    """The response of the Delta API to a request that it refuses."""
    document = {"error": {"message": message, "type": kind, "code": status}}
    jsonschema.validate(document, _MODELS["DeltaErrorResponse"])
    return Answer(status, document)


def _page(name: str, found: list[Any], token: str | None) -> Answer:
    begin = int(token or 0)
    rest = str(begin + _PAGE) if len(found) > begin + _PAGE else None
    return Answer(200, {name: found[begin : begin + _PAGE], "next_page_token": rest})


def _response(answer: Answer) -> web.Response:
    headers = {"Location": f"{API}/elsewhere"} if answer.status in range(300, 400) else {}
    text = json.dumps(answer.document)
    return web.Response(status=answer.status, text=text, content_type="application/json", headers=headers)
