"""Calls Fabric's REST API for mirrored databases through Microsoft's client; only this package imports it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pydantic
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, DeserializationError, HttpResponseError
from azure.core.paging import ItemPaged, PageIterator
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import RetryPolicy
from azure.core.rest import HttpRequest, HttpResponse

from mirror_assets.errors import MirrorError
from mirror_assets.features.fabric.database import (
    PART,
    Database,
    Definition,
    RefreshedTable,
    RefreshedTables,
    ReportedTable,
    TargetProperties,
    definition_payload,
    refresh_request,
)
from mirror_assets.features.fabric.errors import (
    FABRIC_CLIENT_MISSING,
    FABRIC_DENIED,
    FABRIC_ITEM_MISSING,
    FABRIC_REFUSED,
    FABRIC_UNAVAILABLE,
)
from mirror_assets.features.fabric.fabric_settings import PUBLIC_ENDPOINT
from mirror_assets.lakes.errors import first_line, token_step
from mirror_assets.lakes.store_faults import CAPACITY_PAUSED, fabric_fault
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DatabaseState, DatabaseStatus

if TYPE_CHECKING:
    from microsoft_fabric_api.generated.mirroreddatabase.models import ErrorResponse, TableMirroringStatusResponse

# Status requests are POSTs, which azure-core retries after a lost response only if they are listed.
_REPEATABLE = frozenset({"GET", "POST"})
_LIMIT_SECONDS = 300.0
# Fabric ends a refresh after this time, if the request names no other.
REFRESH_SECONDS = 900.0


class FabricClient:
    """The mirrored databases of a workspace. Methods raise FABRIC_UNAVAILABLE, FabricRefused, and SettingErrors."""

    def __init__(
        self,
        workspace: UUID,
        credential: TokenCredential,
        endpoint: str = PUBLIC_ENDPOINT,
        ca_bundle: Path | None = None,
    ) -> None:
        """Make the client; no request is sent yet. Raises FABRIC_CLIENT_MISSING.

        `endpoint` is that of the REST API. `ca_bundle` replaces the public certificate authorities.
        """
        # Imported here, because it takes most of a second and 50 MB.
        try:
            from microsoft_fabric_api.extensions.mirroreddatabase import FabricMirroredDatabaseClient
        except ImportError as error:
            raise FABRIC_CLIENT_MISSING() from error

        verify = {"connection_verify": str(ca_bundle)} if ca_bundle else {}
        base = f"{endpoint.rstrip('/')}/"
        self._client = FabricMirroredDatabaseClient(credential, base, retry_policy=FabricRetry(), **verify)
        self._workspace = str(workspace)

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
            return Definition.model_validate_json(self._ended(HttpRequest("POST", path), what).text())

    def update_definition(self, database: UUID, payload: str) -> None:
        """Replace the definition, waiting for a long-running operation if Fabric starts one."""
        what = f"update the definition of mirrored database {database}"
        path = f"workspaces/{self._workspace}/mirroredDatabases/{database}/updateDefinition"
        part = {"path": PART, "payload": payload, "payloadType": "InlineBase64"}
        with fabric_errors(what):
            self._ended(HttpRequest("POST", path, json={"definition": {"parts": [part]}}), what, has_result=False)

    def sql_endpoint(self, database: UUID) -> UUID:
        """Return the SQL analytics endpoint of the mirrored database. Raises FABRIC_UNAVAILABLE until it is created."""
        what = f"find the SQL endpoint of mirrored database {database}"
        with fabric_errors(what):
            found = self._client.items.get_mirrored_database(self._workspace, str(database)).properties
        endpoint = found.sql_endpoint_properties if found else None
        state = str(endpoint.provisioning_status) if endpoint else "InProgress"
        if endpoint is None or not endpoint.id or state != "Success":
            error = FABRIC_REFUSED if state == "Failed" else FABRIC_UNAVAILABLE
            raise error(what=what, why=f"its creation is {state}")
        return UUID(endpoint.id)

    def refresh_metadata(
        self, endpoint: UUID, tables: Sequence[TableName] = (), limit_seconds: float = REFRESH_SECONDS
    ) -> tuple[RefreshedTable, ...]:
        """Bring tables of the SQL endpoint up to date with their Delta tables, and return the result of each.

        No tables: all. Every name has its schema. A refresh that takes longer than the limit continues in Fabric.
        """
        what = f"refresh the metadata of SQL endpoint {endpoint}"
        path = f"workspaces/{self._workspace}/sqlEndpoints/{endpoint}/refreshMetadata"
        with fabric_errors(what):
            answer = self._ended(HttpRequest("POST", path, json=refresh_request(tables)), what, limit_seconds)
            return RefreshedTables.model_validate_json(answer.text()).value

    def start(self, database: UUID) -> None:
        """Start mirroring. Not retried if the response is lost: check the status then."""
        with fabric_errors(f"start mirrored database {database}"):
            self._client.mirroring.start_mirroring(self._workspace, str(database))

    def stop(self, database: UUID) -> None:
        """Stop mirroring. When it is started again, Fabric reads the landing zone from the first file on."""
        with fabric_errors(f"stop mirrored database {database}"):
            self._client.mirroring.stop_mirroring(self._workspace, str(database))

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

    def _ended(
        self, request: HttpRequest, what: str, limit_seconds: float = _LIMIT_SECONDS, *, has_result: bool = True
    ) -> HttpResponse:
        """Return the response, or the result of the long-running operation that Fabric starts instead."""
        answer = self._sent(request)
        if answer.status_code != 202:
            return answer
        return operation_result(
            answer, what, lambda path: self._sent(HttpRequest("GET", path)), limit_seconds, has_result=has_result
        )

    def _sent(self, request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = self._client.send_request(request, retry_on_methods=_REPEATABLE)
        answer.raise_for_status()
        return answer


def _reported_table(found: TableMirroringStatusResponse) -> ReportedTable:
    metrics = found.metrics
    return ReportedTable(
        name=TableName(found.source_schema_name or None, str(found.source_table_name)),
        state=str(found.status),
        error_code=found.error.error_code if found.error else None,
        message=_message(found.error),
        processed_rows=(metrics.processed_rows or 0) if metrics else 0,
        processed_bytes=(metrics.processed_bytes or 0) if metrics else 0,
        last_sync=metrics.last_sync_date_time if metrics else None,
        sync_latency_seconds=metrics.last_sync_latency_in_seconds if metrics else None,
    )


def _message(error: ErrorResponse | None) -> str | None:
    return first_line(error.message or error.error_code or "") if error else None


_TRIES = 5
_SECONDS = 180
_LONGEST_RETRY_AFTER = 60.0


class FabricRetry(RetryPolicy[HttpRequest, HttpResponse]):
    """azure-core's retries, with a Retry-After of up to a minute; after a longer one, the request fails."""

    def __init__(self) -> None:
        super().__init__(retry_total=_TRIES, retry_status=_TRIES, timeout=_SECONDS)

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """Whether to retry: after a temporary failure whose Retry-After is short, unless the capacity is paused."""
        pause = self.get_retry_after(response) or 0.0
        if pause > _LONGEST_RETRY_AFTER or not super().is_retry(settings, response):
            return False
        return fabric_fault(_error_body(response.http_response.text()).errorCode) is not CAPACITY_PAUSED


_OVERLOADED = "CapacityLimitExceeded"  # whatever the HTTP status
_DENIED, _MISSING, _PASSING = (401, 403), (404,), (408, 429, 430)


class FabricErrorBody(pydantic.BaseModel):
    """The body of an error response; some say whether a retry can succeed."""

    model_config = pydantic.ConfigDict(frozen=True)

    errorCode: str = ""  # noqa: N815 Fabric's spelling
    message: str = ""
    isRetriable: bool = False  # noqa: N815 Fabric's spelling


@contextmanager
def fabric_errors(what: str) -> Iterator[None]:
    """Translate the errors of a request in the block; `what` completes "Fabric refused to …"."""
    try:
        yield
    except HttpResponseError as error:
        raise _refusal(what, error) from error
    except AzureError as error:
        raise FABRIC_UNAVAILABLE(what=what, why=first_line(str(error))) from error
    except ValueError as error:  # an invalid response: of azure-core, of pydantic, or of a conversion
        raise FABRIC_REFUSED(what=what, why=f"its response can't be read ({first_line(str(error))})") from error


def _error_body(text: str) -> FabricErrorBody:
    """Return the body of an error response; an empty one if the text is none of Fabric's."""
    try:
        return FabricErrorBody.model_validate_json(text)
    except ValueError:  # also pydantic's ValidationError
        return FabricErrorBody()


def _refusal(what: str, error: HttpResponseError) -> MirrorError:
    if isinstance(error, ClientAuthenticationError) and error.response is None:
        why = first_line(str(error))  # the credential got no token
        return FABRIC_DENIED(what=what, why=why, next_step=token_step(why))
    status, body = error.status_code or 0, _error_body(error.response.text() if error.response else "")
    why = f"{body.errorCode or status}: {first_line(body.message or error.reason or '')}"
    fault, step = fabric_fault(why), None
    if fault is not None:
        why, step = f"it {fault.says} ({why})", fault.next_step
    is_busy = fault is CAPACITY_PAUSED or body.errorCode == _OVERLOADED
    if body.isRetriable or is_busy or status in _PASSING or status >= 500:
        return FABRIC_UNAVAILABLE(what=what, why=why, next_step=step)
    if status in _DENIED:
        return FABRIC_DENIED(what=what, why=why, next_step=step)
    if status in _MISSING:
        return FABRIC_ITEM_MISSING(what=what, why=why)
    return FABRIC_REFUSED(what=what, why=why, answer=body.errorCode)


_Item = TypeVar("_Item")


def all_pages(ask: Callable[[str | None], ItemPaged[_Item]]) -> list[_Item]:
    """Return the items of all pages; `ask` takes the continuation token of a page, None for the first.

    Fabric's client would request later pages with GET (the API is documented as POST), and send our access token to the
    address in the response. So each page is requested like the first.
    """
    found: list[_Item] = []
    token: str | None = None
    while True:
        pages = cast("PageIterator[_Item]", ask(token).by_page())
        found += next(pages)
        address, requested = pages.continuation_token, token
        if address is None:
            return found
        token, *more = parse_qs(urlsplit(address).query).get("continuationToken", [None])
        if token is None or more or token == requested:
            raise DeserializationError("the address of its next page has no new token")


_PAUSE, _LONGEST_PAUSE = 2.0, 20.0
_RUNNING = frozenset({"NotStarted", "Running"})


class _Operation(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    status: str
    error: FabricErrorBody | None = None


def operation_result(
    accepted: HttpResponse, what: str, get: Callable[[str], HttpResponse], limit_seconds: float, *, has_result: bool
) -> HttpResponse:
    """Wait for a long-running operation and return its result, if it has one; `get` requests a path of the API.

    The operation is polled by its id, not at the address in Location, so that our access token goes only to the
    configured endpoint. Raises FabricRefused when it failed, and FABRIC_UNAVAILABLE when it takes too long.
    """
    # Without tenacity, which would need callbacks for the pause, set by each response, and for both ends.
    try:
        path = f"operations/{UUID(accepted.headers.get('x-ms-operation-id', ''))}"
    except ValueError:
        raise FABRIC_REFUSED(what=what, why="its response names no operation") from None
    deadline, answer = time.monotonic() + limit_seconds, accepted
    while time.monotonic() < deadline:
        requested = answer.headers.get("Retry-After", "")
        time.sleep(min(float(requested), _LONGEST_PAUSE) if requested.isdecimal() else _PAUSE)
        answer = get(path)
        operation = _Operation.model_validate_json(answer.text())
        if operation.status == "Succeeded":
            return get(f"{path}/result") if has_result else answer
        if operation.status not in _RUNNING:
            body = operation.error or FabricErrorBody()
            raise FABRIC_REFUSED(
                what=what,
                why=f"{body.errorCode or operation.status}: {first_line(body.message)}",
                answer=body.errorCode,
            )
    raise FABRIC_UNAVAILABLE(what=what, why=f"the operation is still running after {limit_seconds:.0f} s")
