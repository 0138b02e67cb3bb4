"""Faults happen at the request that they name, on the side of its effect that they name, and then no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core.exceptions import AzureError
from azure.storage.filedatalake import DataLakeFileClient

from mirror_assets_tests.worlds.onelake import (
    Action,
    Drop,
    Fault,
    Hold,
    LoopbackItem,
    LoopbackOneLake,
    Moment,
    Operation,
    Reply,
)


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    return onelake.new_item()


@pytest.fixture
def file(onelake: LoopbackOneLake, item: LoopbackItem) -> Iterator[DataLakeFileClient]:
    """The SDK's client of `file`, which retries nothing."""
    with onelake.service() as service:
        client = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        client.exists()
        onelake.log.reset()
        yield client


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
    for held in onelake.faults.held:
        assert held.release().status == 201
        assert item.names() == ["file"]
    file.create_file()
