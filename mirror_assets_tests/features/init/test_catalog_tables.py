"""Tables that a rule finds in a Unity Catalog, which answers on this machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.config.discovered import FoundState, When
from mirror_assets.config.model import Config
from mirror_assets_tests.features.init.lake import FEED
from mirror_assets_tests.worlds.disk_lake import DiskLake, names
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import Answer, LoopbackUnity, Table

_DENIED = Answer.refusal(403, "PERMISSION_DENIED", "No USE SCHEMA.")


class CatalogLake(DiskLake):
    """Tables on the disk that a catalog names."""

    def register(self, unity: LoopbackUnity, *paths: str) -> None:
        """Make tables at `<schema>/<name>`, and register them."""
        self.add(*paths)
        for path in paths:
            unity.add(f"main.{path.replace('/', '.')}", f"file://{self.lake / path}")

    def look_in(self, unity: LoopbackUnity, place: str, more: str = "") -> None:
        """Write mirror.yaml with a rule for a place of the catalog."""
        catalog = f"catalogs: {{uc: {{type: unity, url: '{unity.url}', name: main, token_variable: UC_TOKEN}}}}\n"
        self.configure(f"{{from: {place}, keys: {{default: [id]}}{more}}}", catalog)


@pytest.fixture
def lake(tmp_path: Path) -> CatalogLake:
    return CatalogLake(tmp_path)


def by_name(config: Config) -> dict[str, FoundState]:
    return {row.name: row.state for row in config.discovered.tables}


def test_tables_of_a_schema_are_mirrored_under_their_names(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "sales/lines", "sales/items", "stock/parts")
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    config = lake.load(When.NOW)
    assert names(config) == ["sales.items", "sales.lines", "sales.orders"]
    assert config.table("sales.orders").source == "catalog://uc/sales.orders"
    assert config.table("sales.orders").keys == ("id",)


def test_all_schemas_are_those_that_the_catalog_shows(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "sales_eu/orders", "stock/parts")
    lake.look_in(unity, "{catalog: uc}")
    assert names(lake.load(When.NOW)) == ["sales.orders", "sales_eu.orders", "stock.parts"]
    lake.look_in(unity, "{catalog: uc, schema: 'sales*'}", ", schema: 'eu_{folder}', exclude: [sales/*]")
    assert names(lake.load(When.NOW)) == ["eu_sales_eu.orders"]


def test_a_later_look_costs_a_request_for_each_page(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "sales/lines", "sales/items")
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    lake.load(When.REFRESH)
    assert len(unity.log) == 2 + 3, "two pages, and where each table lies"
    unity.log.clear()
    assert len(names(lake.load(When.REFRESH))) == 3
    assert len(unity.log) == 2
    unity.log.clear()
    assert len(names(lake.load())) == 3
    assert unity.log == [], "definitions load from what is remembered"


def test_what_is_no_delta_table_is_said_to_be_none(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders")
    view = Table("main.sales.recent", None, data_format=None, table_type="VIEW")
    unity.tables[view.full_name] = view
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    config = lake.load(When.NOW)
    assert by_name(config) == {
        "sales.orders": FoundState.NEW,
        "sales.recent": FoundState.NOT_A_TABLE,
    }
    reasons = {row.name: row.reason for row in config.discovered.tables}
    assert "it is a view" in reasons["sales.recent"]


def test_a_catalog_managed_table_is_found(lake: CatalogLake, unity: LoopbackUnity) -> None:
    made = ManagedTable(unity, "main.sales.managed", lake.root / "writer", lake.lake / "managed")
    write_deltalake(str(made.writer), pa.table({"id": [1]}), configuration=FEED)
    made.ratify()
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    assert by_name(lake.load(When.NOW)) == {"sales.managed": FoundState.NEW}


def test_a_name_that_no_mirror_can_have_is_refused(lake: CatalogLake, unity: LoopbackUnity) -> None:
    unity.tables["main.sales.a b"] = Table("main.sales.a b", f"file://{lake.lake}/x")
    lake.register(unity, "sales/orders")
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    assert by_name(lake.load(When.NOW)) == {"a b": FoundState.NAME_REFUSED, "sales.orders": FoundState.NEW}


def test_a_catalog_that_is_away_keeps_what_is_known(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders")
    lake.look_in(unity, "{catalog: uc, schema: sales}")
    lake.load(When.NOW)
    unity.faults[:] = [_DENIED]
    config = lake.load(When.NOW)
    assert names(config) == ["sales.orders"]
    (rule,) = config.discovered.rules
    assert "the catalog uc refuses access" in rule.trouble


def test_a_schema_that_is_not_shown_stops_no_other(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "stock/parts")
    lake.look_in(unity, "{catalog: uc}")
    schemas = Answer(200, {"schemas": [{"name": "sales"}, {"name": "stock"}]})
    unity.faults[:] = [schemas, _DENIED]
    config = lake.load(When.NOW)
    assert names(config) == ["stock.parts"]
    (closed,) = (row for row in config.discovered.tables if row.name != "stock.parts")
    assert (closed.address, closed.state) == ("catalog://uc/sales", FoundState.UNREADABLE)


def test_a_schema_that_a_revoked_grant_hides_keeps_its_tables(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "stock/parts", "stock/bins")
    lake.look_in(unity, "{catalog: uc}")
    lake.load(When.NOW)
    for _ in range(3):
        unity.faults[:] = [Answer(200, {"schemas": [{"name": "stock"}]})]
        config = lake.load(When.NOW)
        assert names(config) == ["sales.orders", "stock.bins", "stock.parts"]
    assert "1 of 3 tables are no longer listed (sales/orders)" in config.discovered.rules[0].trouble


def test_a_table_in_a_found_folder_counts_once(lake: CatalogLake, unity: LoopbackUnity) -> None:
    lake.register(unity, "sales/orders", "sales/lines")
    folders = "\n  - {from: {store: lake, path: '*/*'}, schema: '{folder}', keys: {default: [id]}}\n"
    tables = "tables: {old.lines: {source: ./lake/sales/lines, keys: [id]}}\n"
    catalog = f"catalogs: {{uc: {{type: unity, url: '{unity.url}', name: main, token_variable: UC_TOKEN}}}}\n"
    lake.configure("{from: {catalog: uc}, keys: {default: [id]}}" + folders, tables + catalog)
    config = lake.load(When.NOW)
    assert names(config) == ["old.lines", "sales.orders"]
    assert config.table("sales.orders").source == "catalog://uc/sales.orders", "the first rule has it"
    assert [row.state for row in config.discovered.tables if row.name == "old.lines"] == [FoundState.NAMED]
