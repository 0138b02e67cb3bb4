"""Calls Fabric's REST API for mirrored databases through Microsoft's client; only this package imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from azure.core.credentials import TokenCredential
from azure.core.rest import HttpRequest, HttpResponse

from mirror_assets.features.fabric.database import (
    PART,
    Database,
    Definition,
    ReportedTable,
    TargetProperties,
    Workspace,
    definition_payload,
)
from mirror_assets.features.fabric.errors import FABRIC_CLIENT_MISSING
from mirror_assets.features.fabric.rest import FabricRetry, all_pages, fabric_errors, first_line, operation_result
from mirror_assets.monitoring import DatabaseState, DatabaseStatus

if TYPE_CHECKING:
    from microsoft_fabric_api.generated.mirroreddatabase.models import ErrorResponse, TableMirroringStatusResponse

# Status requests are POSTs, which azure-core retries after a lost response only if they are listed.
_REPEATABLE = frozenset({"GET", "POST"})


class FabricClient:
    """The mirrored databases of a workspace. Methods raise FabricUnavailable, FabricRefused, and SettingErrors."""

    def __init__(self, workspace: Workspace, credential: TokenCredential) -> None:
        """Make the client; no request is sent yet. Raises fabric_client_missing."""
        # Imported here, because it takes most of a second and 50 MB.
        try:
            from microsoft_fabric_api.extensions.mirroreddatabase import FabricMirroredDatabaseClient
        except ImportError as error:
            raise FABRIC_CLIENT_MISSING() from error

        verify = {"connection_verify": str(workspace.ca_bundle)} if workspace.ca_bundle else {}
        base = f"{workspace.endpoint.rstrip('/')}/"
        self._client = FabricMirroredDatabaseClient(credential, base, retry_policy=FabricRetry(), **verify)
        self._workspace = str(workspace.id)

    def databases(self) -> tuple[Database, ...]:
        """List the mirrored databases of the workspace that this identity may see."""
        ask = self._client.items.list_mirrored_databases
        with fabric_errors(f"list the mirrored databases of workspace {self._workspace}"):
            found = all_pages(lambda token: ask(self._workspace, continuation_token_parameter=token))
            return tuple(Database(UUID(str(item.id)), str(item.display_name)) for item in found)

    def create(self, name: str, target: TargetProperties) -> Database:
        """Create an open mirror: a mirrored database with a landing zone."""
        part = {"path": PART, "payload": definition_payload(target), "payloadType": "InlineBase64"}
        request = {"displayName": name, "definition": {"parts": [part]}}
        with fabric_errors(f"create mirrored database {name!r}"):
            created = self._client.items.create_mirrored_database(self._workspace, request)
            return Database(UUID(str(created.id)), str(created.display_name))

    def definition(self, database: UUID) -> Definition:
        """Read the definition, waiting for a long-running operation if Fabric starts one."""
        what = f"read the definition of mirrored database {database}"
        path = f"workspaces/{self._workspace}/mirroredDatabases/{database}/getDefinition"
        # Not the client's own method, which waits indefinitely if the operation fails.
        with fabric_errors(what):
            answer = self._sent(HttpRequest("POST", path))
            if answer.status_code == 202:
                answer = operation_result(answer, what, lambda operation: self._sent(HttpRequest("GET", operation)))
            return Definition.model_validate_json(answer.text())

    def start(self, database: UUID) -> None:
        """Start mirroring. Not retried if the response is lost: check the status then."""
        with fabric_errors(f"start mirrored database {database}"):
            self._client.mirroring.start_mirroring(self._workspace, str(database))

    def status(self, database: UUID) -> DatabaseStatus:
        """Read the state of the mirrored database."""
        with fabric_errors(f"show the status of mirrored database {database}"):
            found = self._client.mirroring.get_mirroring_status(
                self._workspace, str(database), retry_on_methods=_REPEATABLE
            )
        known = next((state for state in DatabaseState if state.value == found.status), None)
        unknown = None if known else f"Fabric calls its state {first_line(str(found.status))!r}"
        return DatabaseStatus(known or DatabaseState.UNKNOWN, _message(found.error) or unknown)

    def tables(self, database: UUID) -> tuple[ReportedTable, ...]:
        """List the tables of the mirrored database."""
        ask = self._client.mirroring.get_tables_mirroring_status
        with fabric_errors(f"list the tables of mirrored database {database}"):
            found = all_pages(
                lambda token: ask(
                    self._workspace,
                    str(database),
                    continuation_token_parameter=token,
                    retry_on_methods=_REPEATABLE,
                    cls=lambda page: page or (),
                )
            )
            return tuple(map(_reported_table, found))

    def _sent(self, request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = self._client.send_request(request, retry_on_methods=_REPEATABLE)
        answer.raise_for_status()
        return answer


def _reported_table(found: TableMirroringStatusResponse) -> ReportedTable:
    metrics = found.metrics
    return ReportedTable(
        schema=found.source_schema_name or None,
        table=str(found.source_table_name),
        state=str(found.status),
        error_code=found.error.error_code if found.error else None,
        message=_message(found.error),
        processed_rows=(metrics.processed_rows or 0) if metrics else 0,
        processed_bytes=(metrics.processed_bytes or 0) if metrics else 0,
        last_sync=metrics.last_sync_date_time if metrics else None,
    )


def _message(error: ErrorResponse | None) -> str | None:
    return first_line(error.message or error.error_code or "") if error else None
