"""Fabric's REST interface for mirrored databases, as a pure function of a request; no server."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from mirror_assets_tests.worlds.fabric.databases import Json, LoopbackDatabase


@dataclass(frozen=True)
class Request:
    """One request, read whole."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes

    @property
    def operation(self) -> str:
        """Its last word, such as `startMirroring`; `create` and `list` for the collection."""
        last = self.path.rpartition("/")[2]
        if last == "mirroredDatabases":
            return "create" if self.method == "POST" else "list"
        return last


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: int
    document: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def refusal(cls, status: int, code: str, message: str = "The test wants it so.", **headers: str) -> Answer:
        """An error as Fabric reports it: `errorCode`, not `error.code`."""
        return cls(status, {"errorCode": code, "message": message, "requestId": str(uuid.uuid4())}, headers)


class Interface:
    """The databases of one workspace. `page_size` cuts lists; `slow` definitions are long-running operations."""

    def __init__(self, base: str) -> None:
        self.workspace = str(uuid.uuid4())
        self.databases: list[LoopbackDatabase] = []
        self.page_size, self.slow = 100, 0
        self.outcome: Json = {"status": "Succeeded"}
        self.next_page_at = base
        self._base = base
        self._operations: dict[str, tuple[list[Json], Json | None]] = {}

    def add(self, database: LoopbackDatabase) -> LoopbackDatabase:
        self.databases.append(database)
        return database

    def perform(self, request: Request) -> Answer:
        steps = request.path.strip("/").split("/")
        if steps[:2] == ["v1", "operations"]:
            return self._operation(steps[2], wants_result=steps[3:] == ["result"])
        if steps[:4] == ["v1", "workspaces", self.workspace, "sqlEndpoints"] and steps[5:] == ["refreshMetadata"]:
            return self._refresh(request, steps[4])
        if steps[:3] != ["v1", "workspaces", self.workspace] or steps[3:4] != ["mirroredDatabases"]:
            return Answer.refusal(404, "WorkspaceNotFound", "The requested workspace was not found.")
        if len(steps) == 4:
            return self._create(request) if request.method == "POST" else self._list(request)
        found = next((database for database in self.databases if database.id == steps[4]), None)
        if found is None:
            return Answer.refusal(404, "ItemNotFound", "The requested item was not found.")
        return self._on_item(request, found, "/".join(steps[5:]))

    def _on_item(self, request: Request, database: LoopbackDatabase, action: str) -> Answer:
        if not action and request.method == "GET":
            return Answer(200, self._item(database))
        actions: Mapping[str, Callable[[], Answer]] = {
            "getDefinition": lambda: self._maybe_later({"definition": database.definition}),
            "updateDefinition": lambda: self._update(request, database),
            "startMirroring": lambda: _started(database),
            "stopMirroring": lambda: _stopped(database),
            "getMirroringStatus": lambda: Answer(200, database.status_answer()),
            "getTablesMirroringStatus": lambda: self._page(request, "data", database.tables()),
        }
        if action not in actions:
            return Answer.refusal(404, "UnknownAction")
        if request.method != "POST":
            return Answer.refusal(405, "MethodNotAllowed")
        return actions[action]()

    def _list(self, request: Request) -> Answer:
        return self._page(request, "value", [self._item(database) for database in self.databases])

    def _create(self, request: Request) -> Answer:
        requested = json.loads(request.body)
        if not requested.get("definition", {}).get("parts"):
            return Answer.refusal(400, "InvalidInput", "The definition is required.")
        if any(database.name == requested["displayName"] for database in self.databases):
            return Answer.refusal(409, "ItemDisplayNameAlreadyInUse", "The name is in use.")
        made = LoopbackDatabase(requested["displayName"], requested["definition"], "Initializing", ["Initialized"])
        return Answer(201, self._item(self.add(made)))

    def _item(self, database: LoopbackDatabase) -> Json:
        names = {"id": database.id, "displayName": database.name, "type": "MirroredDatabase"}
        properties = {"defaultSchema": "dbo", "sqlEndpointProperties": database.endpoint}
        return {**names, "workspaceId": self.workspace, "properties": properties}

    def _page(self, request: Request, name: str, found: Sequence[Json]) -> Answer:
        """One page; its token has characters that an address has to hide."""
        first = int(request.query.get("continuationToken", "0+&=%").partition("+")[0])
        last = first + self.page_size
        document: dict[str, object] = {name: list(itertools.islice(found, first, last))}
        if last < len(found):
            token = f"{last}+&=%"
            document["continuationToken"] = token
            document["continuationUri"] = f"{self.next_page_at}{request.path}?continuationToken={quote(token, safe='')}"
        return Answer(200, document)

    def _update(self, request: Request, database: LoopbackDatabase) -> Answer:
        requested = json.loads(request.body)
        if not requested.get("definition", {}).get("parts"):
            return Answer.refusal(400, "InvalidInput", "The definition is required.")
        database.definition = requested["definition"]
        return self._maybe_later(None)

    def _refresh(self, request: Request, endpoint: str) -> Answer:
        """As Microsoft's client documents it: at most 25 tables in a request; none: all."""
        found = next((database for database in self.databases if database.endpoint.get("id") == endpoint), None)
        if found is None:
            return Answer.refusal(404, "ItemNotFound", "The requested item was not found.")
        scopes = json.loads(request.body or b"{}").get("tables", [])
        requested = [f"{scope['schema']}.{name}" for scope in scopes for name in scope["tableNames"]]
        if len(requested) > 25:
            return Answer.refusal(400, "InvalidInput", "At most 25 tables.")
        return self._maybe_later(found.refresh(requested))

    def _maybe_later(self, document: Json | None) -> Answer:
        """The document at once, or as the result of a long-running operation."""
        if not self.slow:
            return Answer(200, document)
        operation = str(uuid.uuid4())
        waits: list[Json] = [{"status": "Running", "percentComplete": 50}] * (self.slow - 1)
        self._operations[operation] = ([*waits, self.outcome], document)
        location = f"{self._base}/v1/operations/{operation}"
        return Answer(202, None, {"Location": location, "x-ms-operation-id": operation, "Retry-After": "0"})

    def _operation(self, operation: str, *, wants_result: bool) -> Answer:
        waits, result = self._operations[operation]
        if wants_result:
            if result is None:
                return Answer.refusal(400, "OperationHasNoResult", "The operation has no result.")
            return Answer(200, result)
        return Answer(200, waits.pop(0) if len(waits) > 1 else waits[0], {"Retry-After": "0"})


def _stopped(database: LoopbackDatabase) -> Answer:
    database.stop()
    return Answer(200)


def _started(database: LoopbackDatabase) -> Answer:
    if database.start():
        return Answer(200)
    return Answer.refusal(400, "MirroringNotStartable", "The mirrored database is initializing.")
