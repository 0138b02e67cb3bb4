"""Reconciling, rebuilding and dropping a table whose mirror is asked through Fabric's interface.

Behind the loopback, the stand-in plays Fabric: it replicates when it is asked, and tells what Fabric tells.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import parse_config
from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.fabric_mirror import FabricMirror
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.rebuild_table import rebuild_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase, replicating, reported_table
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric

SYNCED = "2026-11-21T05:07:11Z"


@pytest.fixture
def database(fabric: LoopbackFabric) -> LoopbackDatabase:
    """A mirrored database that has no table yet."""
    return fabric.interface.add(LoopbackDatabase("sales", state="Running"))


def requested(lab: Lab, client: FabricClient, database: LoopbackDatabase) -> FabricMirror:
    """The mirror of the lab's landing zone; Spark finds its tables where the stand-in puts them."""
    return FabricMirror(client, UUID(database.id), lab.store, str(lab.root / "mirror"))


def test_reconcile_waits_for_every_file_and_then_compares(
    mirrored: Lab, client: FabricClient, database: LoopbackDatabase
) -> None:
    mirror, manifest = requested(mirrored, client, database), mirrored.context.manifest()
    assert manifest is not None
    assert reconcile_table(mirrored.context, mirror).state is ReconcileState.PENDING
    told = reported_table("shop", "orders", processedRows=manifest.landed_rows, lastSyncDateTime=SYNCED)
    database.tables = lambda: [told]
    assert len(mirrored.files) == 3
    assert reconcile_table(mirrored.context, mirror).state is ReconcileState.PENDING, "all rows, but files are left"
    database.tables = replicating(mirrored.replicator)
    result = reconcile_table(mirrored.context, mirror)
    assert (result.state, result.version, result.source_rows) == (ReconcileState.EQUAL, 5, 10)


def test_a_rebuild_waits_until_fabric_has_dropped_the_table_and_has_it_again(
    mirrored: Lab, client: FabricClient, database: LoopbackDatabase
) -> None:
    database.tables = replicating(mirrored.replicator)
    mirror = requested(mirrored, client, database)
    assert mirror.table(TABLE) is not None
    told: list[str] = []
    published = rebuild_table(mirrored.context, mirror, told.append)
    assert published.manifest.epoch == 2
    assert told[-1].endswith("waiting for the table to come back")
    assert reconcile_table(mirrored.context, mirror).state is ReconcileState.EQUAL


def test_a_rebuild_of_a_table_that_fabric_fails_says_why(
    mirrored: Lab, client: FabricClient, database: LoopbackDatabase
) -> None:
    answers = [[], [reported_table("shop", "orders", "Failed", error={"errorCode": "X", "message": "bad file"})]]
    database.tables = lambda: answers.pop(0)
    with raises(StopError, ErrorCode.TABLE_STOPPED, match="bad file"):
        rebuild_table(mirrored.context, requested(mirrored, client, database), lambda _: None)


def test_spark_is_not_sent_without_an_identity(
    mirrored: Lab, client: FabricClient, database: LoopbackDatabase, fabric: LoopbackFabric
) -> None:
    url = f"https://onelake.dfs.fabric.microsoft.com/{fabric.interface.workspace}/{database.id}/Files/LandingZone"
    text = (
        f"landing_zone: {{onelake: {{url: '{url}'}}}}\nmirror: {{fabric: {{}}}}\n"
        f"tables: {{{TABLE}: {{source: '{mirrored.uri}', keys: [id]}}}}\n"
    )
    config = parse_config(text.encode(), mirrored.config_file, {})
    context = TableContext(config, config.table(TABLE), mirrored.context.log, mirrored.store, lambda: mirrored.spark)
    database.tables = replicating(mirrored.replicator)
    with raises_row(MISTAKES, match=r":1: landing_zone\.onelake\.credential: Spark can't read the mirror"):
        reconcile_table(context, requested(mirrored, client, database))
