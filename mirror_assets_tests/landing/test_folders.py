"""Which tables have a folder, and which of them mirror.yaml does not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.landing.folders import find_orphans, table_names
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.landing.staging import CHECKS, TABLE, position_of, stage
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.memory import MemoryStore


def test_tables_with_and_without_schema_by_name_and_nothing_else() -> None:
    store = MemoryStore()
    assert table_names(store) == ()
    names = ("shop.schema/orders", "shop.schema/items", "plain", "_scratchPad/shop.orders/1-x", "a.b", "c.schema/d.e")
    for folder in names:
        store.create(f"{folder}/_metadata.json", b"{}")
    for file in ("_partnerEvents.json", "file"):
        store.create(file, b"{}")
    assert [str(name) for name in table_names(store)] == ["plain", "shop.items", "shop.orders"]


@pytest.fixture(params=["local", "loopback"])
def zone(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A landing zone of each kind, where one table has landed and others have something that is not ours."""
    server = request.getfixturevalue("onelake") if request.param == "loopback" else None
    store: Store = loopback_store(server, server.new_item()) if server else LocalStore(tmp_path / "zone")
    drive(publish(TABLE, stage(store, position_of(store), last=7), CHECKS), store)
    store.create("foreign/_metadata.json", b"{}")
    store.create("_rebuild/no.table.at.all.json", b"{}")
    return store


def _found(store: Store, *known: TableName) -> list[tuple[str, str]]:
    return [(str(orphan.name), orphan.left) for orphan in find_orphans(store, known)]


def test_a_folder_of_ours_that_is_not_named_is_an_orphan(zone: Store) -> None:
    assert _found(zone, TABLE) == []
    assert _found(zone) == [("shop.orders", "a table folder")]
    (orphan,) = find_orphans(zone, [TableName("shop", "renamed")])
    assert "mirror-assets drop shop.orders" in orphan.message


def test_an_unfinished_rebuild_is_an_orphan_and_a_finished_one_is_not(zone: Store) -> None:
    begun, ended = TableName("shop", "begun"), TableName(None, "ended")
    drive(begin_rebuild(begun), zone)
    drive(advance_rebuild(ended, drive(begin_rebuild(ended), zone), RebuildStep.FINISHED), zone)
    assert _found(zone, TABLE) == [("shop.begun", "an unfinished rebuild or drop")]
    drive(begin_rebuild(TABLE), zone)
    assert ("shop.orders", "a table folder") in _found(zone)
    zone.create("_rebuild/torn.json", b"{")
    assert ("torn", "an unfinished rebuild or drop") in _found(zone, TABLE)
