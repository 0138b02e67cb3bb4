"""`init` for the tables of a Unity Catalog, which answers on this machine; their files are on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given

from mirror_assets.cli import main
from mirror_assets.config.load import load_config
from mirror_assets.features.init.with_spark.survey import name_tables
from mirror_assets.landing.names import TableName
from mirror_assets_tests.features.init.lake import FEED
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import TOKEN, LoopbackUnity, Table

_SHORT = {**FEED, "delta.logRetentionDuration": "interval 1 days"}
_ROWS = {"at": [1, 1, 2, 2], "order_id": [1, 2, 3, 4]}


def _register(unity: LoopbackUnity, root: Path, name: str, properties: dict[str, str], *key: str) -> None:
    write_deltalake(root / name, pa.table(_ROWS), configuration=properties)
    unity.add(f"main.{name}", f"file://{root / name}").primary_key = key


def _init(unity: LoopbackUnity, out: Path, *options: str) -> int:
    named = ["--catalog", "main", "--token-variable", "UC_TOKEN", "--out", str(out)]
    return main(["init", unity.url, *named, *options])


@pytest.fixture
def shop(unity: LoopbackUnity, tmp_path: Path) -> LoopbackUnity:
    """A table with a declared key, one without, one whose feed is off, and a view."""
    _register(unity, tmp_path, "sales.orders", FEED, "at", "order_id")
    _register(unity, tmp_path, "sales.order", FEED)
    _register(unity, tmp_path, "stock.order", {})
    view = Table("main.sales.recent", None, data_format=None, table_type="VIEW")
    unity.tables[view.full_name] = view
    return unity


def test_a_file_is_written_that_names_tables_as_the_catalog_does(
    shop: LoopbackUnity, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.yaml"
    assert _init(shop, out, "--no-spark", "--json") == 0
    shown = capsys.readouterr()
    assert "3 tables in the catalog main" in shown.err
    config = load_config(out)
    assert {str(table.name): (table.source, table.keys) for table in config.all_tables()} == {
        "sales.orders": ("catalog://main/sales.orders", ("at", "order_id")),
        "sales.order": ("catalog://main/sales.order", ("order_id",)),
        "stock.order": ("catalog://main/stock.order", ("order_id",)),
    }
    records = {record["path"]: record for record in json.loads(shown.out)}
    assert {name: record["proof"] for name, record in records.items()} == {
        "sales.orders": "declared",
        "sales.order": "not proven",
        "stock.order": "not proven",
    }
    sql = out.with_suffix(".sql").read_text()
    assert (
        "-- Advised: ALTER TABLE `main`.`stock`.`order` SET TBLPROPERTIES (delta.enableChangeDataFeed = true);" in sql
    )
    assert TOKEN not in out.read_text() + sql + shown.out + shown.err


def test_a_catalog_managed_table_is_surveyed(unity: LoopbackUnity, tmp_path: Path) -> None:
    made = ManagedTable(unity, "main.sales.orders", tmp_path / "writer", tmp_path / "orders")
    write_deltalake(made.writer, pa.table(_ROWS), configuration=FEED)
    made.ratify()
    assert _init(unity, tmp_path / "m.yaml", "--no-spark") == 0
    assert load_config(tmp_path / "m.yaml").table("sales.orders").source == "catalog://main/sales.orders"


def test_advice_names_the_table_as_the_catalog_does(unity: LoopbackUnity, tmp_path: Path) -> None:
    _register(unity, tmp_path, "sales.orders", _SHORT, "order_id")
    assert _init(unity, tmp_path / "m.yaml", "--no-spark") == 0
    assert "-- Advised: ALTER TABLE `main`.`sales`.`orders` SET" in (tmp_path / "m.sql").read_text()


def test_stores_of_a_catalog_have_the_options(shop: LoopbackUnity, tmp_path: Path) -> None:
    store = ("--store", "s3://acme-lake/", "--region", "eu-central-1", "--credential", "environment")
    assert _init(shop, tmp_path / "m.yaml", "--no-spark", *store) == 0
    config = load_config(tmp_path / "m.yaml")
    assert config.stores["lake"].region == "eu-central-1"
    assert not config.catalogs["main"].is_vending, "an identity was named that reads the tables"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--region", "eu-central-1"], "--region is a setting of a store, and no store is named"),
        (["--schema", "x*"], "the catalog main lists no Delta tables in schemas like 'x*'"),
        (
            ["--schema", "views"],
            "lists no Delta tables in schemas like 'views', and 1 views or tables of other formats",
        ),
    ],
)
def test_a_catalog_without_tables_is_refused(
    shop: LoopbackUnity, tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    view = Table("main.views.recent", None, data_format=None, table_type="VIEW")
    shop.tables[view.full_name] = view
    assert _init(shop, tmp_path / "m.yaml", "--no-spark", *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./lake", "--catalog", "main"], "with --catalog, it is the address of a Unity Catalog"),
        (["./lake", "--schema", "sales"], "--schema goes with --catalog"),
        (["./lake", "--spark-setting", "a=b"], "--spark-setting goes with --catalog"),
        (["spark", "--catalog", "c", "--token-variable", "T"], "`token_variable` is not for `type: spark`"),
        (["spark", "--catalog", "c", "--spark-setting", "nothing"], "expected NAME=VALUE, got 'nothing'"),
        (["http://host", "--catalog", "c", "--token-variable", "T"], "a token is sent over https only"),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["init", *arguments, "--out", str(tmp_path / "m.yaml")]))
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def _names(*paths: str) -> list[str]:
    return [str(name) for name in name_tables(path.split("/") for path in paths)]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("lake/sales/orders", "sales.orders"),
        ("orders", "orders"),
        ("sales/my orders", "sales.my_orders"),
        ("a.b/c.d", "a_b.c_d"),
        ("sales/50%41", "sales.50_41"),
        ("x: y/[1]", "x_y.[1]"),
        ("größe/ä", "größe.ä"),
        ("x/...", "x.table"),
    ],
)
def test_the_last_two_folders_are_schema_and_table(path: str, name: str) -> None:
    assert _names(path) == [name]


def test_tables_that_would_share_a_folder_get_numbers() -> None:
    assert _names("a/x/t", "b/x/t", "c/X/T") == ["x.t", "x.t_2", "X.T_3"]
    assert _names("x/t_2", "x/t 2", "x/t", "y/x/t") == ["x.t_2", "x.t_2_2", "x.t", "x.t_3"]


def test_a_name_leaves_out_what_fabric_refuses() -> None:
    assert _names("a/50% #1+'x'`y`?", "sys/objects", "x/DB_Owner/t") == ["a.50_1_x_y_", "sys_.objects", "DB_Owner_.t"]


def test_the_shortest_path_keeps_its_name() -> None:
    assert _names("archive/sales/orders", "sales/orders") == ["sales.orders_2", "sales.orders"]


@given(st.lists(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=3), max_size=6))
def test_every_name_is_valid_and_has_a_folder_of_its_own(paths: list[list[str]]) -> None:
    names = name_tables(paths)
    assert [TableName.parse(str(name)) for name in names] == names
    assert len({name.folder.casefold() for name in names}) == len(paths)
