"""Making and starting a mirrored database: once, whatever is lost, and never over somebody else's."""

from __future__ import annotations

from uuid import UUID

import pytest

from mirror_assets.errors import RetryError, SettingError, StopError
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.database import TargetProperties, create_database, start_mirroring
from mirror_assets.features.fabric.errors import FABRIC_REFUSED, FABRIC_UNAVAILABLE, FabricCode
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.worlds.fabric.databases import OPEN_MIRROR, Json, LoopbackDatabase, definition
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric

PLAIN = TargetProperties()


@pytest.mark.parametrize("slow", [0, 2])
def test_one_of_this_name_is_found_and_not_made_again(client: FabricClient, fabric: LoopbackFabric, slow: int) -> None:
    fabric.interface.slow = slow
    first = create_database(client, "sales", PLAIN)
    again = create_database(client, "sales", PLAIN)
    assert (again.database, again.was_there) == (first.database, True)
    assert len(fabric.interface.databases) == 1


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (
            definition(OPEN_MIRROR | {"source": {"type": "AzureSqlDatabase", "typeProperties": {}}}),
            "mirrors AzureSqlDatabase, not",
        ),
        (
            definition(OPEN_MIRROR | {"target": {"typeProperties": {"defaultSchema": "bronze"}}}),
            "default schema 'bronze', not 'dbo'",
        ),
        (definition({}), "no readable mirroring.json"),
        ({"parts": [{"path": "mirroring.json", "payload": "%%%"}]}, "no readable mirroring.json"),
    ],
)
def test_another_database_of_this_name_is_refused(
    client: FabricClient, fabric: LoopbackFabric, found: Json, why: str
) -> None:
    fabric.interface.add(LoopbackDatabase("sales", found))
    with raises(SettingError, FabricCode.FABRIC_REFUSED, match=why):
        create_database(client, "sales", PLAIN)
    assert len(fabric.interface.databases) == 1


def test_a_database_with_other_properties_is_found_and_the_differences_are_reported(client: FabricClient) -> None:
    wanted = TargetProperties(defaultSchema="bronze", retentionInDays=7, enableDeltaChangeDataFeed=True)
    assert create_database(client, "sales", wanted.model_copy(update={"retentionInDays": 1})).differences == ()
    found = create_database(client, "sales", wanted)
    assert (found.was_there, found.differences) == (True, ("retentionInDays is 1, not 7",))


@pytest.mark.parametrize("done", [True, False])
def test_a_lost_answer_is_looked_up(client: FabricClient, fabric: LoopbackFabric, done: bool) -> None:
    fabric.faults.append(Fault("create", None, after=done))
    if done:
        assert not create_database(client, "sales", PLAIN).was_there
    else:
        with raises_row(FABRIC_UNAVAILABLE):
            create_database(client, "sales", PLAIN)
    assert len(fabric.interface.databases) == done
    assert create_database(client, "sales", PLAIN).was_there is done


def test_a_repeated_request_meets_what_the_first_has_made(client: FabricClient, fabric: LoopbackFabric) -> None:
    """azure-core repeats a POST that was answered with 503, although it may have been done."""
    fabric.faults.append(Fault("create", Answer.refusal(503, "ServiceUnavailable"), after=True))
    assert str(create_database(client, "sales", PLAIN).database.id) == fabric.interface.databases[0].id
    assert [request.operation for request in fabric.log].count("create") == 2


def test_other_refusals_are_raised(client: FabricClient, fabric: LoopbackFabric) -> None:
    fabric.faults.append(Fault("create", Answer.refusal(400, "InvalidDisplayName")))
    with raises_row(FABRIC_REFUSED, match="InvalidDisplayName"):
        create_database(client, "?", PLAIN)


@pytest.mark.parametrize(
    ("state", "starts"), [("Initialized", 1), ("Paused", 1), ("Hibernating", 1), ("Running", 0), ("Starting", 0)]
)
def test_mirroring_starts_unless_it_runs(client: FabricClient, fabric: LoopbackFabric, state: str, starts: int) -> None:
    database = fabric.interface.add(LoopbackDatabase("sales", state=state))
    assert start_mirroring(client, UUID(database.id)) == (starts > 0)
    assert database.starts == starts


@pytest.mark.parametrize("state", ["Initializing", "Stopping"])
def test_what_is_on_its_way_can_be_started_later(client: FabricClient, fabric: LoopbackFabric, state: str) -> None:
    database = fabric.interface.add(LoopbackDatabase("sales", state=state, coming=["Initialized"]))
    with raises(RetryError, FabricCode.FABRIC_UNAVAILABLE, match=f"is {state}: mirroring can't be started now"):
        start_mirroring(client, UUID(database.id))
    assert database.starts == 0
    assert start_mirroring(client, UUID(database.id))


def test_what_was_stopped_is_started_only_if_a_replay_is_wanted(client: FabricClient, fabric: LoopbackFabric) -> None:
    database = fabric.interface.add(LoopbackDatabase("sales", state="Stopped"))
    with raises(StopError, FabricCode.MIRRORING_STOPPED, match="from the first file on"):
        start_mirroring(client, UUID(database.id))
    assert database.starts == 0
    assert start_mirroring(client, UUID(database.id), replay=True)


@pytest.mark.parametrize("done", [True, False])
def test_a_start_whose_answer_is_lost(client: FabricClient, fabric: LoopbackFabric, done: bool) -> None:
    database = fabric.interface.add(LoopbackDatabase("sales"))
    fabric.faults.append(Fault("startMirroring", None, after=done))
    if done:
        assert start_mirroring(client, UUID(database.id))
    else:
        with raises_row(FABRIC_UNAVAILABLE):
            start_mirroring(client, UUID(database.id))
    assert database.starts == done
