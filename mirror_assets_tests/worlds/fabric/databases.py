"""Mirrored databases whose states move as Fabric's do, and whose tables are a test's, or the stand-in's."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.standin.table_record import TableStatus

Json = Mapping[str, object]
OPEN_MIRROR = {
    "source": {"type": "GenericMirror", "typeProperties": {}},
    "target": {"type": "MountedRelationalDatabase", "typeProperties": {"defaultSchema": "dbo", "format": "Delta"}},
}


def definition(properties: Json) -> Json:
    payload = base64.b64encode(json.dumps({"properties": properties}).encode()).decode()
    return {"parts": [{"path": "mirroring.json", "payload": payload, "payloadType": "InlineBase64"}]}


@dataclass
class LoopbackDatabase:
    """One mirrored database. `coming` are the states that it takes next, one with each question for its status.

    `refreshed` has the tables of each refresh of the SQL endpoint; those of `refusals` fail, each with this error.
    `replay` is called when it starts after it was stopped: Fabric then reads the landing zone from the first file on.
    """

    name: str
    definition: Json = field(default_factory=lambda: definition(OPEN_MIRROR))
    state: str = "Initialized"
    coming: list[str] = field(default_factory=list)
    error: Json | None = None
    tables: Callable[[], Sequence[Json]] = tuple
    starts: int = 0
    endpoint: Json = field(default_factory=lambda: {"id": str(uuid.uuid4()), "provisioningStatus": "Success"})
    refusals: dict[str, str] = field(default_factory=dict)
    refreshed: list[Sequence[str]] = field(default_factory=list)
    replay: Callable[[], object] = bool
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def status_answer(self) -> Json:
        answer = {"status": self.state} | ({"error": self.error} if self.error else {})
        if self.coming:
            self.state = self.coming.pop(0)
        return answer

    def refresh(self, requested: Sequence[str]) -> Json:
        """Synchronize these tables of the endpoint, or all, and report each as Microsoft's client reads it."""
        known = [f"{one.get('sourceSchemaName', 'dbo')}.{one['sourceTableName']}" for one in self.tables()]
        self.refreshed.append(list(requested) or known)
        return {"value": [self._synchronized(name, is_known=name in known) for name in self.refreshed[-1]]}

    def _synchronized(self, name: str, *, is_known: bool) -> Json:
        code = self.refusals.get(name, "" if is_known else "DeltaTableNotFound")
        error = {"error": {"errorCode": code, "message": "The table was not synchronized."}} if code else {}
        times = dict.fromkeys(("startDateTime", "endDateTime", "lastSuccessfulSyncDateTime"), "2026-11-21T05:07:11Z")
        return {"tableName": name, "status": "Failure" if code else "Success", **times, **error}

    def stop(self) -> None:
        self.state, self.coming = "Stopping", ["Stopped"]

    def start(self) -> bool:
        if self.state == "Initializing":
            return False
        if self.state == "Stopped":
            self.replay()
        self.starts += 1
        self.state, self.coming = "Starting", ["Running"]
        return True


def reported_table(schema: str | None, table: str, state: str = "Replicating", **more: object) -> Json:
    """A table of getTablesMirroringStatus; `more` are the metrics, or the error."""
    metrics = {"processedBytes": 1, "processedRows": 0, "lastSyncLatencyInSeconds": 5, **more}
    error = {"error": metrics.pop("error")} if "error" in metrics else {}
    names = {"sourceSchemaName": schema} if schema is not None else {}
    return {**names, "sourceTableName": table, "status": state, "metrics": metrics, **error}


def replicating(replicator: LocalReplicator) -> Callable[[], list[Json]]:
    """The tables of a service that replicates: it runs an iteration per request, and reports what Fabric reports."""

    def tables() -> list[Json]:
        return [reported_status(status) for status in replicator.poll()]

    return tables


def reported_status(status: TableStatus) -> Json:
    synced = {"lastSyncDateTime": status.last_sync.isoformat()} if status.last_sync else {}
    failed = {"errorCode": status.error_code, "message": status.message}
    return reported_table(
        status.name.schema or "dbo",
        status.name.table,
        status.state.value,
        processedRows=status.processed_rows,
        processedBytes=status.processed_bytes,
        **synced,
        **({"error": failed} if status.error_code else {}),
    )
