"""Faults do what they say, at the request that they say, and then no more."""

from __future__ import annotations

import threading
import time
from http.client import IncompleteRead

import pytest
from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestError, ServiceResponseError
from azure.storage.filedatalake import DataLakeFileClient, FileSystemClient

from mirror_assets_tests.worlds.onelake import (
    Action,
    Call,
    CutBody,
    Delay,
    Drop,
    Fault,
    Hold,
    LoopbackItem,
    LoopbackOneLake,
    Moment,
    Operation,
    Reply,
    Request,
)
from mirror_assets_tests.worlds.onelake.raw import ask, connect, signed_in
from mirror_assets_tests.worlds.onelake.sdk import refused


@pytest.fixture
def file(workspace: FileSystemClient, item: LoopbackItem, onelake: LoopbackOneLake) -> DataLakeFileClient:
    """A client of `file`, signed in, with an empty log."""
    client = workspace.get_file_client(f"{item.guid}/Files/LandingZone/file")
    client.exists()
    onelake.log.reset()
    return client


@pytest.mark.parametrize(
    ("action", "done", "status"),
    [
        (Drop(Moment.BEFORE), False, None),
        (Drop(Moment.AFTER), True, None),
        (Reply(503, "ServerBusy"), False, 503),
        (Reply(503, "ServerBusy", moment=Moment.AFTER), True, 503),
        (Hold(), False, None),
    ],
    ids=str,
)
def test_a_fault_says_whether_the_effect_happens(
    onelake: LoopbackOneLake,
    item: LoopbackItem,
    file: DataLakeFileClient,
    action: Action,
    done: bool,
    status: int | None,
) -> None:
    fault = Fault(action)
    onelake.faults.add(fault)
    with pytest.raises(AzureError):
        file.create_file()
    assert (item.names() == ["file"]) == done
    (record,) = onelake.log.records
    assert (record.operation, record.status, record.faults) == (Operation.CREATE, status, (fault,))
    file.create_file()


def test_a_reply_carries_its_code_and_headers(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    onelake.faults.add(Fault(Reply(429, "CapacityLimitExceeded", {"Retry-After": "7"})))
    with pytest.raises(HttpResponseError) as error:
        file.create_file()
    assert refused(error.value) == (429, "CapacityLimitExceeded")
    assert error.value.response.headers["Retry-After"] == "7"  # type: ignore[union-attr]


def test_a_dropped_connection_is_no_answer(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    onelake.faults.add(Fault(Drop(Moment.AFTER)))
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        file.create_file()


def test_a_body_is_cut(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    item.write("file", b"0123456789")
    onelake.faults.add(Fault(CutBody(0.3), on=Operation.READ))
    with pytest.raises(IncompleteRead) as error:
        ask(onelake, "GET", item.url.removeprefix(onelake.url) + "/file", signed_in(onelake))
    assert (error.value.partial, error.value.expected) == (b"012", 7)


def test_the_sdk_reads_a_cut_body_again(onelake: LoopbackOneLake, item: LoopbackItem, file: DataLakeFileClient) -> None:
    item.write("file", b"0123456789")
    onelake.faults.add(Fault(CutBody(), on=Operation.READ))
    assert file.download_file().readall() == b"0123456789"
    assert onelake.log.counts() == {Operation.READ: 2}


def test_a_held_request_is_late(onelake: LoopbackOneLake, item: LoopbackItem, file: DataLakeFileClient) -> None:
    file.create_file()
    item.make_folder("b")
    target = f"{item.workspace}/{item.guid}/Files/LandingZone/b/file"
    onelake.faults.add(Fault(Hold(), on=Operation.RENAME))
    with pytest.raises(AzureError):
        file.rename_file(target)
    assert item.names("b") == []
    (held,) = onelake.faults.held
    assert held.release().status == 201
    assert item.names("b") == ["file"]
    assert held.release().status == 404
    assert [record.status for record in onelake.log.records] == [201, None, 201, 404]


def test_a_delay_is_waited_for(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    onelake.faults.add(Fault(Delay(0.3)))
    start = time.monotonic()
    file.create_file()
    assert time.monotonic() - start > 0.3


def test_others_are_served_meanwhile(onelake: LoopbackOneLake, item: LoopbackItem, file: DataLakeFileClient) -> None:
    """A function that is called at a request may itself ask the server, as a second publisher would."""
    seen: list[tuple[str, bytes]] = []

    def intrude(request: Request) -> None:
        assert threading.current_thread() is not threading.main_thread()
        with onelake.service() as service:
            other = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
            seen.append((request.path, other.download_file().readall()))
            item.write("file", b"theirs")

    item.write("file", b"first")
    onelake.faults.add(Fault(Call(intrude, Moment.BEFORE), on=Operation.CREATE))
    onelake.faults.add(Fault(Call(lambda _: seen.append(("after", item.read("file"))), Moment.AFTER)))
    file.create_file()
    assert seen == [("Files/LandingZone/file", b"first"), ("after", b"")]


def test_the_nth_request_that_fits_is_meant(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    onelake.faults.add(Fault(Reply(503, "ServerBusy"), on=Operation.CREATE, path="*/file", nth=2, times=2))
    statuses = []
    for _ in range(5):
        file.exists()
        try:
            file.create_file()
            statuses.append(201)
        except HttpResponseError as error:
            statuses.append(error.status_code or 0)
    assert statuses == [201, 503, 503, 201, 201]


def test_a_fault_can_ask_for_more_than_a_path(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    def has_data(request: Request) -> bool:
        return len(request.body) > 3

    onelake.faults.add(Fault(Reply(503, "ServerBusy"), path="*/file", where=has_data))
    file.create_file()
    file.append_data(b"one", 0)
    with pytest.raises(HttpResponseError):
        file.append_data(b"four", 3)


def test_a_fault_of_entra_has_to_be_meant(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    onelake.faults.add(Fault(Drop(Moment.BEFORE), on=Operation.TOKEN), Fault(Reply(503, "ServerBusy"), path="*/file"))
    with onelake.service() as service:
        file = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        with pytest.raises(HttpResponseError):
            file.create_file()
    met = [(record.operation, len(record.faults)) for record in onelake.log.records]
    assert met == [(Operation.DISCOVERY, 0), (Operation.TOKEN, 1), (Operation.TOKEN, 0), (Operation.CREATE, 1)]


def test_a_fault_that_never_came_is_known(onelake: LoopbackOneLake, file: DataLakeFileClient) -> None:
    late = Fault(Reply(503, "ServerBusy"), nth=2)
    onelake.faults.add(late)
    file.create_file()
    assert onelake.faults.unmet == (late,)
    with pytest.raises(HttpResponseError):
        file.create_file()
    assert not onelake.faults.unmet


def test_a_body_that_is_cut_on_its_way_in_has_no_effect(
    onelake: LoopbackOneLake, item: LoopbackItem, file: DataLakeFileClient
) -> None:
    file.create_file()
    onelake.log.reset()
    target = f"{item.url.removeprefix(onelake.url)}/file?action=append&position=0&flush=true"
    connection = connect(onelake)
    connection.putrequest("PATCH", target)
    for name, value in {**signed_in(onelake), "Content-Length": "10"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"01234")
    connection.close()
    deadline = time.monotonic() + 5
    while not onelake.log.storage and time.monotonic() < deadline:
        time.sleep(0.01)
    (record,) = onelake.log.storage
    assert (record.operation, record.status) == (Operation.APPEND, None)
    assert item.read("file") == b""
