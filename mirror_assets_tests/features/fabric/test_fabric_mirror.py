"""Fabric as a mirror: its tables beside their folders, and when all that has landed is applied."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from uuid import UUID, uuid4

import pytest

from mirror_assets.errors import SettingError
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.fabric_mirror import FabricMirror, FabricTable, open_fabric
from mirror_assets.features.fabric.fabric_settings import FabricConfig
from mirror_assets.lakes.azure_identity import CredentialKind
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import PROCESSED, TableName
from mirror_assets.monitoring import DatabaseState, TableState
from mirror_assets.zones.onelake.onelake_zone import OneLakeIdentity
from mirror_assets_tests.landing.staging import TABLE, land_next, landed_manifest
from mirror_assets_tests.worlds.fabric.databases import (
    OPEN_MIRROR,
    Json,
    LoopbackDatabase,
    definition,
    reported_table,
)
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric
from mirror_assets_tests.zones.memory import MemoryStore

SYNCED = "2026-11-21T05:07:11Z"
URI = "abfss://workspace@host/item/Tables"


def landed(files: int) -> MemoryStore:
    """A zone where the table has one file of two rows in each generation."""
    store = MemoryStore()
    for last in range(files):
        land_next(store, last)
    return store


def mirror(client: FabricClient, fabric: LoopbackFabric, store: MemoryStore, *tables: Json) -> FabricMirror:
    database = fabric.interface.add(LoopbackDatabase("sales", tables=lambda: tables))
    return FabricMirror(client, UUID(database.id), store, f"{URI}/")


def test_a_table_with_its_folder(client: FabricClient, fabric: LoopbackFabric) -> None:
    store = landed(3)
    told = reported_table("shop", "orders", processedRows=4, lastSyncDateTime=SYNCED)
    found = mirror(client, fabric, store, told).table(TABLE)
    assert found == FabricTable(
        name=TABLE,
        state=TableState.REPLICATING,
        error_code=None,
        message=None,
        processed_rows=4,
        processed_bytes=1,
        last_sync=datetime(2026, 11, 21, 5, 7, 11, tzinfo=timezone.utc),
        folder_present=True,
        waiting_files=2,
        applied_number=None,
        mirror_rows=None,
        sync_latency_seconds=5,
        uri=f"{URI}/shop/orders",
    )
    assert found.location == f"{URI}/shop/orders"


def test_tables_without_a_schema_are_in_the_default_schema(client: FabricClient, fabric: LoopbackFabric) -> None:
    told = (reported_table("bronze", "orders"), reported_table("dbo", "lines"))
    database = fabric.interface.add(LoopbackDatabase("sales", tables=lambda: told))
    requested = FabricMirror(client, UUID(database.id), MemoryStore(), URI, "bronze")
    found = requested.table(TableName(None, "orders"))
    assert found is not None
    assert found.uri == f"{URI}/bronze/orders"
    assert requested.table(TableName(None, "lines")) is None


def test_a_dropped_table_is_none_and_one_without_folder_is_about_to_be(
    client: FabricClient, fabric: LoopbackFabric
) -> None:
    requested = mirror(client, fabric, MemoryStore(), reported_table("shop", "old", "Stopped"))
    assert requested.poll_table(TABLE) is None
    (old,) = requested.poll()
    assert (str(old.name), old.state, old.folder_present, old.waiting_files) == (
        "shop.old",
        TableState.STOPPED,
        False,
        0,
    )


@pytest.mark.parametrize("folder", ["plain", "dbo.schema/plain"])
@pytest.mark.parametrize("schema", ["dbo", None])
def test_a_table_in_the_default_schema_has_the_name_of_its_folder(
    client: FabricClient, fabric: LoopbackFabric, folder: str, schema: str | None
) -> None:
    store = MemoryStore()
    store.create(f"{folder}/_metadata.json", b"{}")
    requested = mirror(client, fabric, store, reported_table(schema, "plain"))
    (found,) = requested.status()
    assert (found.name.folder, found.folder_present, found.location) == (folder, True, f"{URI}/dbo/plain")
    assert requested.table(found.name) == found
    assert requested.table(TableName("other", "plain")) is None


def test_a_state_that_fabric_has_added_is_none_of_ours(client: FabricClient, fabric: LoopbackFabric) -> None:
    (found,) = mirror(client, fabric, MemoryStore(), reported_table("s", "t", "Resting")).status()
    assert (found.state, found.message) == (TableState.UNKNOWN, "Fabric calls its state 'Resting'")


@pytest.fixture
def applied(client: FabricClient, fabric: LoopbackFabric) -> tuple[FabricTable, Manifest]:
    """A table with all three files applied: two were moved away, the last one stays; and its manifest."""
    store = landed(3)
    for number in (1, 2):
        path = TABLE.landing_file(number)
        store.create(f"{TABLE.folder}/{PROCESSED}/{path.rpartition('/')[2]}", store.read(path, 1 << 20).data)
        store.delete(path)
    told = reported_table("shop", "orders", processedRows=6, lastSyncDateTime=SYNCED)
    found = mirror(client, fabric, store, told).table(TABLE)
    assert found is not None
    return found, landed_manifest(store)


def test_all_is_applied_when_nothing_but_the_last_file_is_left_and_every_row_counted(
    applied: tuple[FabricTable, Manifest],
) -> None:
    table, manifest = applied
    assert manifest.landed_rows == 6
    assert table.has_applied(manifest)


@pytest.mark.parametrize(
    "behind",
    [
        {"state": TableState.SNAPSHOTTING},
        {"state": TableState.UNKNOWN},
        {"waiting_files": 1},
        {"processed_rows": 5},
        {"last_sync": None},
    ],
)
def test_any_sign_of_waiting_is_enough(applied: tuple[FabricTable, Manifest], behind: dict[str, object]) -> None:
    table, manifest = applied
    assert not replace(table, **behind).has_applied(manifest)  # type: ignore[arg-type]


def test_many_tables_are_asked_for_at_once(client: FabricClient, fabric: LoopbackFabric) -> None:
    tables = [reported_table("shop", f"t{number}") for number in range(5)]
    at_once = mirror(client, fabric, MemoryStore(), *tables).at_once()
    for number in range(5):
        assert at_once.table(TableName("shop", f"t{number}")) is not None
        assert at_once.database().state is DatabaseState.INITIALIZED
    asked = [request.operation for request in fabric.log]
    assert (asked.count("getTablesMirroringStatus"), asked.count("getMirroringStatus")) == (1, 1)


def test_an_error_of_a_shared_request_is_raised_to_every_caller(client: FabricClient, fabric: LoopbackFabric) -> None:
    at_once = mirror(client, fabric, MemoryStore(), reported_table("shop", "orders")).at_once()
    fabric.faults.append(Fault("getMirroringStatus", Answer.refusal(403, "InsufficientPrivileges")))
    for _ in range(2):
        with pytest.raises(SettingError, match="InsufficientPrivileges"):
            at_once.database()


def test_the_retention_of_the_mirrored_tables_is_that_of_the_definition(
    client: FabricClient, fabric: LoopbackFabric
) -> None:
    found = mirror(client, fabric, MemoryStore())
    assert found.retention_days() is None
    target = {"type": "MountedRelationalDatabase", "typeProperties": {"defaultSchema": "dbo", "retentionInDays": 1}}
    fabric.interface.databases[-1].definition = definition({**OPEN_MIRROR, "target": target})
    assert found.retention_days() == 1
    fabric.faults.append(Fault("getDefinition", Answer.refusal(403, "InsufficientPrivileges")))
    assert found.retention_days() is None, "who may not read the definition can mirror all the same"


def test_one_client_serves_a_process() -> None:
    fabric, identity, workspace = FabricConfig(), OneLakeIdentity(), uuid4()
    client = open_fabric(fabric, identity, workspace)
    assert open_fabric(FabricConfig(), OneLakeIdentity(), workspace) is client
    managed = OneLakeIdentity(credential=CredentialKind.MANAGED_IDENTITY)
    for other in ((FabricConfig(endpoint="https://x"), identity, workspace), (fabric, managed, workspace)):
        assert open_fabric(*other) is not client
    assert open_fabric(fabric, identity, uuid4()) is not client
