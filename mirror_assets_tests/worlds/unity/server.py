"""A Unity Catalog on this machine that answers as its OpenAPI says, with faults and a log of requests."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from mirror_assets_tests.worlds.onelake.tls import LoopbackServer

API = "/api/2.1/unity-catalog"
TOKEN = "dapi-0123456789abcdef"  # noqa: S105 it is good here only
_PAGE = 2
_OPERATIONS = ("UNKNOWN_TABLE_OPERATION", "READ", "READ_WRITE")


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


@dataclass
class Table:
    """A table as the catalog keeps it."""

    full_name: str
    location: str | None
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    data_format: str | None = "DELTA"
    table_type: str = "EXTERNAL"
    properties: dict[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()

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
    """The server; `with` starts and stops it. `vend` makes TemporaryCredentials for a table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Table] = {}
        self.vend: Callable[[Table], dict[str, Any]] = lambda _: {}
        self.faults: list[Answer | None] = []
        self.log: list[Asked] = []

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
        self.vend = lambda _: {}

    def vended(self, table: Table) -> list[Asked]:
        return [asked for asked in self.log if asked.table_id == table.table_id]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path = request.path.removeprefix(API)
        asked_for = json.loads(body).get("table_id") if path == "/temporary-table-credentials" else None
        self.log.append(Asked(request.method, path, asked_for, request.headers.get("User-Agent", "")))
        if self.faults:
            fault = self.faults.pop(0)
            if fault is None:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return _response(fault)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _response(Answer.refusal(401, "UNAUTHENTICATED", "The token is not good here."))
        # Vending asks another server on this machine: not in the loop.
        return _response(await asyncio.to_thread(self._answer, request, path, body))

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

    def _credentials(self, request: dict[str, str]) -> Answer:
        if request.get("operation") not in _OPERATIONS or request.keys() - {"table_id", "operation"}:
            return Answer.refusal(400, "INVALID_ARGUMENT", f"Invalid request: {sorted(request)}")
        table = next((table for table in self.tables.values() if table.table_id == request["table_id"]), None)
        if table is None:
            return Answer.refusal(404, "TABLE_NOT_FOUND", f"Table not found: {request['table_id']}")
        return Answer(200, self.vend(table))


def _page(name: str, found: list[Any], token: str | None) -> Answer:
    begin = int(token or 0)
    rest = str(begin + _PAGE) if len(found) > begin + _PAGE else None
    return Answer(200, {name: found[begin : begin + _PAGE], "next_page_token": rest})


def _response(answer: Answer) -> web.Response:
    headers = {"Location": f"{API}/elsewhere"} if answer.status in range(300, 400) else {}
    text = json.dumps(answer.document)
    return web.Response(status=answer.status, text=text, content_type="application/json", headers=headers)
