"""Which tables have a folder."""

from __future__ import annotations

from mirror_assets.landing.folders import table_names
from mirror_assets_tests.zones.memory import MemoryStore


def test_tables_with_and_without_schema_by_name_and_nothing_else() -> None:
    store = MemoryStore()
    assert table_names(store) == ()
    names = ("shop.schema/orders", "shop.schema/items", "plain", "_scratchPad/shop.orders/1-x", "a.b", "c.schema/d.e")
    for folder in names:
        store.create(f"{folder}/_metadata.json", b"{}")
    store.create("_partnerEvents.json", b"{}")
    assert [str(name) for name in table_names(store)] == ["plain", "shop.items", "shop.orders"]
