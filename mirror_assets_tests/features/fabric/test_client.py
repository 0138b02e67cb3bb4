"""Every call through Microsoft's client: what is sent, what is read, and what becomes of whatever else is answered."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from uuid import UUID, uuid4

import pytest
from azure.core.credentials import AccessToken

from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, RetryError, SettingError
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.database import Database, TargetProperties, definition_payload
from mirror_assets.features.fabric.errors import FABRIC_REFUSED, FABRIC_UNAVAILABLE, FabricCode, FabricRefused
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import DatabaseState, DatabaseStatus
from mirror_assets_tests.errors import Expected, raises, raises_row
from mirror_assets_tests.features.fabric.conftest import client_of
from mirror_assets_tests.worlds.fabric.databases import OPEN_MIRROR, LoopbackDatabase, reported_table
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

PLAIN = TargetProperties()


def added(fabric: LoopbackFabric, database: LoopbackDatabase | None = None) -> UUID:
    """Its item; its SQL endpoint has the same GUID here, so that one call has all it needs."""
    item = fabric.interface.add(database or LoopbackDatabase("sales"))
    item.endpoint = {"id": item.id, "provisioningStatus": "Success"}
    return UUID(item.id)


def requested(fabric: LoopbackFabric) -> list[str]:
    """Every request's method and operation."""
    return [f"{request.method} {request.operation}" for request in fabric.log]


def refused(status: int, code: str = "", message: str = "why", **headers: str) -> Answer:
    return Answer.refusal(status, code, message, **headers)


def properties(client: FabricClient, database: UUID) -> TargetProperties:
    mirroring = client.definition(database).mirroring
    assert mirroring is not None
    return mirroring.target


def test_a_database_is_created_as_an_open_mirror(client: FabricClient, fabric: LoopbackFabric) -> None:
    made = client.create("sales", PLAIN)
    assert client.databases() == (made,)
    assert requested(fabric) == ["POST create", "GET list"]
    assert properties(client, made.id) == PLAIN


def test_a_database_is_created_with_the_properties_that_are_asked_for(client: FabricClient) -> None:
    wanted = TargetProperties(defaultSchema="bronze", retentionInDays=7, enableDeltaChangeDataFeed=True)
    made = client.create("sales", wanted)
    assert properties(client, made.id) == wanted
    sent = json.loads(base64.b64decode(definition_payload(PLAIN)))["properties"]
    assert sent == OPEN_MIRROR, "what is not asked for is left to Fabric"


def test_without_its_client_the_message_names_the_extra(
    fabric: LoopbackFabric, onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "microsoft_fabric_api.extensions.mirroreddatabase", None)
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match=r"mirror-assets\[fabric\]"):
        client_of(fabric, onelake.credential())


def test_databases_on_every_page(client: FabricClient, fabric: LoopbackFabric) -> None:
    fabric.interface.page_size = 2
    wanted = tuple(Database(added(fabric, LoopbackDatabase(name)), name) for name in "abcde")
    assert client.databases() == wanted
    assert len(fabric.log) == 3


@pytest.mark.parametrize("slow", [0, 1, 3])
def test_a_definition_comes_at_once_or_later(client: FabricClient, fabric: LoopbackFabric, slow: int) -> None:
    database = added(fabric)
    fabric.interface.slow = slow
    (part,) = client.definition(database).parts
    assert part.path == "mirroring.json"
    assert len(fabric.log) == 1 + slow + (slow > 0)


def test_an_operation_that_fails_is_no_reason_to_wait(client: FabricClient, fabric: LoopbackFabric) -> None:
    database = added(fabric)
    fabric.interface.slow = 2
    fabric.interface.outcome = {"status": "Failed", "error": {"errorCode": "Corrupt", "message": "no such thing"}}
    with raises_row(FABRIC_REFUSED, match=r"read the definition of .*: Corrupt: no such thing\. Next"):
        client.definition(database)


def test_an_accepted_request_without_an_operation_is_refused(client: FabricClient, fabric: LoopbackFabric) -> None:
    database = added(fabric)
    fabric.faults.append(Fault("getDefinition", Answer(202, None, {"x-ms-operation-id": "../../other"})))
    with raises_row(FABRIC_REFUSED, match="names no operation"):
        client.definition(database)


def names(*texts: str) -> list[TableName]:
    return [TableName.parse(text) for text in texts]


@pytest.mark.parametrize("slow", [0, 1, 3])
def test_a_refresh_of_the_sql_endpoint_is_followed_to_its_end(
    client: FabricClient, fabric: LoopbackFabric, slow: int
) -> None:
    tables = (reported_table("shop", "orders"), reported_table("shop", "lines"), reported_table(None, "plain"))
    database = LoopbackDatabase("sales", tables=lambda: tables, refusals={"shop.lines": "DeltaTableCorrupt"})
    endpoint = client.sql_endpoint(added(fabric, database))
    fabric.log.clear()
    fabric.interface.slow = slow
    orders, gone = client.refresh_metadata(endpoint, names("shop.orders", "shop.gone"))
    assert (orders.name, orders.status, orders.has_failed, orders.message) == ("shop.orders", "Success", False, "")
    assert orders.last_success == datetime(2026, 11, 21, 5, 7, 11, tzinfo=timezone.utc)
    assert gone.has_failed
    assert gone.message == "DeltaTableNotFound: The table was not synchronized."
    assert len(fabric.log) == 1 + slow + (slow > 0)
    assert json.loads(fabric.log[0].body) == {"tables": [{"schema": "shop", "tableNames": ["orders", "gone"]}]}
    every = client.refresh_metadata(endpoint)
    assert {one.name: one.has_failed for one in every} == {
        "shop.orders": False,
        "shop.lines": True,
        "dbo.plain": False,
    }


def test_more_tables_than_a_request_takes_are_all_refreshed(client: FabricClient, fabric: LoopbackFabric) -> None:
    tables = [reported_table("shop", f"t{number}") for number in range(26)]
    database = LoopbackDatabase("sales", tables=lambda: tables)
    found = client.refresh_metadata(added(fabric, database), names(*(f"shop.t{number}" for number in range(26))))
    assert len(found) == 26
    assert json.loads(fabric.log[-1].body) == {}


@pytest.mark.parametrize(
    ("endpoint", "error"),
    [
        ({}, FABRIC_UNAVAILABLE),
        ({"provisioningStatus": "InProgress"}, FABRIC_UNAVAILABLE),
        ({"provisioningStatus": "Failed", "id": str(uuid4())}, FABRIC_REFUSED),
    ],
)
def test_an_endpoint_that_is_not_there_yet(
    client: FabricClient, fabric: LoopbackFabric, endpoint: dict[str, str], error: ErrorRow[MirrorError]
) -> None:
    database = LoopbackDatabase("sales")
    item = added(fabric, database)
    database.endpoint = endpoint
    with raises_row(error, match="its creation is"):
        client.sql_endpoint(item)


@pytest.mark.parametrize(("slow", "outcome"), [(0, "Succeeded"), (2, "Succeeded"), (2, "Failed")])
def test_a_definition_is_replaced_at_once_or_later(
    client: FabricClient, fabric: LoopbackFabric, slow: int, outcome: str
) -> None:
    """An operation without a result has nothing at `/result`, and it is not requested."""
    database = added(fabric)
    fabric.interface.slow = slow
    fabric.interface.outcome = {"status": outcome, "error": {"errorCode": "Bad", "message": "no"}}
    wanted = TargetProperties(retentionInDays=3)
    if outcome == "Failed":
        with raises_row(FABRIC_REFUSED, match="update the definition of .*: Bad: no"):
            client.update_definition(database, definition_payload(wanted))
        return
    client.update_definition(database, definition_payload(wanted))
    assert len(fabric.log) == 1 + slow
    fabric.interface.slow = 0
    assert properties(client, database) == wanted


def test_a_status_with_an_error_and_one_that_fabric_has_added(client: FabricClient, fabric: LoopbackFabric) -> None:
    database = LoopbackDatabase("sales", state="Paused", error={"errorCode": "X", "message": "capacity.\nmore"})
    assert client.status(added(fabric, database)) == DatabaseStatus(DatabaseState.PAUSED, "capacity")
    database.state, database.error = "Hibernating", None
    found = client.status(UUID(database.id))
    assert found == DatabaseStatus(DatabaseState.UNKNOWN, "Fabric calls its state 'Hibernating'")


def test_tables_have_every_value_that_fabric_reports(client: FabricClient, fabric: LoopbackFabric) -> None:
    tables = (
        reported_table(
            "shop", "orders", processedRows=7, processedBytes=9, lastSyncDateTime="2026-11-21T05:07:11.0663362Z"
        ),
        reported_table(None, "plain", "Failed", error={"errorCode": "TypeMismatch", "message": "column a"}),
        {"sourceTableName": "bare", "status": "Initialized"},
    )
    orders, plain, bare = client.tables(added(fabric, LoopbackDatabase("sales", tables=lambda: tables)))
    assert (str(orders.name), orders.state) == ("shop.orders", "Replicating")
    assert (orders.processed_rows, orders.processed_bytes, orders.sync_latency_seconds) == (7, 9, 5)
    assert orders.last_sync == datetime(2026, 11, 21, 5, 7, 11, 66336, tzinfo=timezone.utc)
    assert (str(plain.name), plain.state, plain.error_code, plain.message) == (
        "plain",
        "Failed",
        "TypeMismatch",
        "column a",
    )
    assert (bare.processed_rows, bare.last_sync, bare.message) == (0, None, None)


def test_tables_on_every_page_each_asked_with_post(client: FabricClient, fabric: LoopbackFabric) -> None:
    """Microsoft's client alone would fetch the second page with GET, which the interface does not have."""
    fabric.interface.page_size = 2
    tables = [reported_table("s", name) for name in "abcde"]
    found = client.tables(added(fabric, LoopbackDatabase("sales", tables=lambda: tables)))
    assert [str(table.name).removeprefix("s.") for table in found] == list("abcde")
    assert requested(fabric) == ["POST getTablesMirroringStatus"] * 3


def test_no_token_goes_to_another_host(client: FabricClient, fabric: LoopbackFabric) -> None:
    fabric.interface.page_size, fabric.interface.next_page_at = 1, "https://127.0.0.1:1"
    tables = [reported_table("s", name) for name in "ab"]
    database = added(fabric, LoopbackDatabase("sales", tables=lambda: tables))
    assert len(client.tables(database)) == 2


@pytest.mark.parametrize("address", ["https://x/y", "https://x/y?continuationToken=", "::"])
def test_a_next_page_without_a_token_is_refused(client: FabricClient, fabric: LoopbackFabric, address: str) -> None:
    fabric.faults.append(Fault("getTablesMirroringStatus", Answer(200, {"data": [], "continuationUri": address})))
    with raises_row(FABRIC_REFUSED, match="no new token"):
        client.tables(added(fabric))


def test_pages_that_never_end_are_refused(client: FabricClient, fabric: LoopbackFabric) -> None:
    page = Answer(200, {"data": [], "continuationUri": "https://x/y?continuationToken=same"})
    fabric.faults += [Fault("getTablesMirroringStatus", page)] * 9
    with raises_row(FABRIC_REFUSED, match="no new token"):
        client.tables(added(fabric))


def test_a_database_without_tables(client: FabricClient, fabric: LoopbackFabric) -> None:
    fabric.faults.append(Fault("getTablesMirroringStatus", Answer(200, {})))
    database = added(fabric)
    assert client.tables(database) == client.tables(database) == ()


CALLS: dict[str, Callable[[FabricClient, UUID], object]] = {
    "getMirroringStatus": lambda client, database: client.status(database),
    "getDefinition": lambda client, database: client.definition(database),
    "updateDefinition": lambda client, database: client.update_definition(database, definition_payload(PLAIN)),
    "refreshMetadata": lambda client, database: client.refresh_metadata(database),
    "startMirroring": lambda client, database: client.start(database),
    "create": lambda client, _: client.create("other", PLAIN),
}
DENIED: Expected = (SettingError, FabricCode.FABRIC_REFUSED)
MISSING: Expected = (SettingError, FabricCode.FABRIC_REFUSED)
REFUSED: Expected = (FabricRefused, FabricCode.FABRIC_REFUSED)
UNAVAILABLE: Expected = (RetryError, FabricCode.FABRIC_UNAVAILABLE)
QUESTIONS = ("getMirroringStatus", "getDefinition", "updateDefinition", "refreshMetadata")
CHANGES = ("startMirroring", "create")


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (refused(401, "TokenExpired"), DENIED, "TokenExpired: why"),
        (refused(403, "InsufficientPrivileges"), DENIED, "InsufficientPrivileges: why.*role Contributor"),
        (refused(403, "RequestDeniedByInboundPolicy"), DENIED, r"DeniedByInboundPolicy: why.*private link"),
        (refused(401, "PrincipalTypeNotSupported"), DENIED, "tenant setting.*Service principals can call Fabric"),
        (refused(403, "NeverHeardOf"), DENIED, "to .*: NeverHeardOf: why"),
        (refused(404, "ItemNotFound"), MISSING, "ItemNotFound: why"),
        (refused(400, "InvalidInput", "no\nsecond line"), REFUSED, r"InvalidInput: no\. "),
        (refused(409, "Conflict"), REFUSED, "Conflict: why"),
        (refused(404, "CapacityNotActive"), UNAVAILABLE, "paused .CapacityNotActive: why.*resume the capacity"),
        (refused(503, "CapacityNotActive"), UNAVAILABLE, "paused .CapacityNotActive: why.*resume the capacity"),
        (Answer(400, {"errorCode": "Busy", "message": "", "isRetriable": True}), UNAVAILABLE, "Busy"),
        (refused(429, "RequestBlocked", **{"Retry-After": "3600"}), UNAVAILABLE, "RequestBlocked"),
        (refused(430, "TooMany"), UNAVAILABLE, "TooMany"),
        (Answer(418, {"errorCode": ["not", "text"]}), REFUSED, "418: "),
        (Answer(400), REFUSED, "400: Bad Request"),
    ],
)
@pytest.mark.parametrize("operation", CALLS)
def test_refusals_become_our_errors(
    client: FabricClient, fabric: LoopbackFabric, answer: Answer, error: Expected, text: str, operation: str
) -> None:
    database, began = added(fabric), time.monotonic()
    fabric.faults += [Fault(operation, answer)]
    with raises(*error, match=text):
        CALLS[operation](client, database)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("operation", CALLS)
def test_a_pause_that_fabric_asks_for_is_waited(client: FabricClient, fabric: LoopbackFabric, operation: str) -> None:
    database, began = added(fabric), time.monotonic()
    fabric.faults += [Fault(operation, refused(429, "RequestBlocked", **{"Retry-After": "1"}))]
    CALLS[operation](client, database)
    assert time.monotonic() - began > 1
    assert len(fabric.log) == 2


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("operation", QUESTIONS)
def test_a_question_whose_answer_is_lost_is_asked_again(
    client: FabricClient, fabric: LoopbackFabric, operation: str, after: bool
) -> None:
    fabric.faults += [Fault(operation, None, after)]
    CALLS[operation](client, added(fabric))
    assert len(fabric.log) == 2


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("operation", CHANGES)
def test_a_change_whose_answer_is_lost_is_left_to_the_caller(
    client: FabricClient, fabric: LoopbackFabric, operation: str, after: bool
) -> None:
    fabric.faults += [Fault(operation, None, after)]
    with raises_row(FABRIC_UNAVAILABLE):
        CALLS[operation](client, added(fabric))
    assert len(fabric.log) == 1


@pytest.mark.parametrize(
    ("operation", "document"),
    [
        ("list", {"value": [{"id": "no guid", "displayName": "x"}]}),
        ("list", {"value": "text"}),
        ("getTablesMirroringStatus", {"data": [{"metrics": {"lastSyncDateTime": "yesterday"}}]}),
        ("getTablesMirroringStatus", {"data": 7}),
        ("getDefinition", {"definition": {"parts": "none"}}),
        ("getDefinition", {}),
        ("refreshMetadata", {"value": [{"status": "Success"}]}),
        ("refreshMetadata", {}),
        ("create", {"displayName": "no id"}),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused(
    client: FabricClient, fabric: LoopbackFabric, operation: str, document: dict[str, object]
) -> None:
    database = added(fabric)
    calls: dict[str, Callable[[], object]] = {
        "list": client.databases,
        "create": lambda: client.create("sales", PLAIN),
        "getDefinition": lambda: client.definition(database),
        "refreshMetadata": lambda: client.refresh_metadata(database),
        "getTablesMirroringStatus": lambda: client.tables(database),
    }
    fabric.faults.append(Fault(operation, Answer(201 if operation == "create" else 200, document)))
    with raises_row(FABRIC_REFUSED, match="can't be read"):
        calls[operation]()


def test_an_item_or_workspace_that_is_not_there(
    client: FabricClient, fabric: LoopbackFabric, onelake: LoopbackOneLake
) -> None:
    with raises(SettingError, FabricCode.FABRIC_REFUSED, match="ItemNotFound"):
        client.tables(uuid4())
    elsewhere = client_of(fabric, onelake.credential(), uuid4())
    with raises(SettingError, FabricCode.FABRIC_REFUSED, match=r"WorkspaceNotFound.*onelake\.url.*re-created"):
        elsewhere.databases()


class NoToken:
    """A credential that hands out something else than a token that Fabric knows."""

    def get_token(self, *scopes: str, **_: object) -> AccessToken:
        assert scopes == ("https://api.fabric.microsoft.com/.default",)
        return AccessToken("planted-token", int(time.time()) + 3600)


def test_a_token_that_is_not_good_is_denied_and_not_shown(fabric: LoopbackFabric) -> None:
    with raises(SettingError, FabricCode.FABRIC_REFUSED, match="Unauthorized") as caught:
        client_of(fabric, NoToken()).databases()
    assert "planted" not in str(caught.value)


def test_a_wrong_secret_is_denied_and_not_shown(fabric: LoopbackFabric, onelake: LoopbackOneLake) -> None:
    with raises(SettingError, FabricCode.FABRIC_REFUSED, match="AADSTS7000215") as caught:
        client_of(fabric, onelake.credential("planted-secret")).databases()
    assert "planted" not in str(caught.value)


def test_a_server_with_an_unknown_certificate_gets_no_token(fabric: LoopbackFabric, onelake: LoopbackOneLake) -> None:
    with raises_row(FABRIC_UNAVAILABLE, match="CERTIFICATE_VERIFY_FAILED"):
        client_of(fabric, onelake.credential(), ca=onelake.ca).create("sales", PLAIN)
    assert fabric.log == []
