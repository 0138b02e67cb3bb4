"""Sources that are named by a catalog: how they are written, and where they are found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mirror_assets.config.model import Config
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.lakes.catalogs import KnownLocations, TableLocation, VendedTable, last_address
from mirror_assets.lakes.errors import LOCATION_UNKNOWN
from mirror_assets_tests.config.reading import mistake, read
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.worlds.unity.server import LoopbackUnity

ORDERS = "catalog://main/sales.orders"
KEYS = {"access_key_id": "ASIA1", "secret_access_key": "hush", "session_token": "hush-2"}
_HERE = "http://127.0.0.1:1"
_UNITY = f"{{type: unity, url: '{_HERE}'}}"


def text(catalog: str, source: str = "{catalog: main, table: sales.orders}", more: str = "", table: str = "") -> str:
    return (
        f"landing_zone: {{path: landing}}\ncatalogs:\n  main: {catalog}\n{more}"
        f"tables:\n  orders: {{source: {source}, keys: [id]{table}}}\n"
    )


def config(catalog: str, more: str = "", table: str = "") -> Config:
    return read(text(catalog, more=more, table=table))


def of_unity(url: str, more: str = "", rest: str = "") -> Config:
    return config(f"{{type: unity, url: '{url}/api/2.1/unity-catalog', token_variable: UC_TOKEN{more}}}", more=rest)


def test_a_table_has_its_name_in_the_catalog_as_address() -> None:
    made = config(_UNITY)
    assert made.table("orders").source == ORDERS
    assert made.is_of_catalog(ORDERS)
    assert not made.is_of_catalog("s3://lake/orders")
    assert made.catalogs["main"].url == _HERE
    assert made.lake_stores() == ()
    assert made.catalog_packages(lambda _: None) == ()


MISTAKES = [
    ("{type: unity}", "catalogs.main: `url` is a setting of `type: unity`, and required there"),
    ("{type: spark, url: 'https://h'}", "catalogs.main: `url` is a setting of `type: unity`, and required there"),
    ("{type: glue}", "catalogs.main.type: expected 'unity' or 'spark', got 'glue'"),
    ("{type: unity, url: h}", "catalogs.main.url: expected the address of a Unity Catalog"),
    ("{type: unity, url: 'https://me:hush@h'}", "catalogs.main.url: expected the address of a Unity Catalog"),
    ("{type: unity, url: 'https://h', token_variable: dapi-hush}", "catalogs.main.token_variable: expected the name"),
    ("{type: unity, url: 'http://h', token_variable: T}", "catalogs.main: a token is sent over https only"),
    ("{type: spark, token_variable: T}", "catalogs.main: `token_variable` is not for `type: spark`"),
    ("{type: spark, credentials: vended}", "catalogs.main: a catalog of Spark issues no credentials here"),
]


@pytest.mark.parametrize(("catalog", "expected"), MISTAKES)
def test_mistakes_of_a_catalog(catalog: str, expected: str) -> None:
    found = mistake(text(catalog))
    assert found.startswith(f"3: {expected}")
    assert "hush" not in found


NAMES = [
    ("{catalog: mian, table: sales.orders}", "source.catalog: unknown catalog 'mian'; did you mean 'main'?"),
    ("{catalog: main, table: orders}", "source.table: 'orders' can't be a table's name in a catalog"),
    ("{catalog: main, table: main.sales.orders}", "source.table: 'main.sales.orders' has more parts than"),
    ("{catalog: main, table: sales.or/ders}", "source.table: 'sales.or/ders' can't be a table's name in a catalog"),
    ("{catalog: main}", "source: expected a path, an address, {store:"),
    ("catalog://main/sales.orders", "source: 'catalog://main/sales.orders' has a scheme that is not known here"),
]


@pytest.mark.parametrize(("source", "expected"), NAMES)
def test_mistakes_of_a_table(source: str, expected: str) -> None:
    assert mistake(text(_UNITY, source)).startswith(f"5: tables.orders.{expected}")


def test_where_a_table_lies_and_whose_keys_read_it(unity: LoopbackUnity) -> None:
    unity.add("main.sales.orders", "s3a://lake/orders/")
    unity.vend = lambda _: {"aws_temp_credentials": KEYS, "expiration_time": int((time.time() + 3600) * 1000)}
    store = "stores:\n  lake: {root: 's3://lake/', region: eu-north-1}\n"
    place = of_unity(unity.url, rest=store).locate(ORDERS)
    assert place.uri == "s3://lake/orders"
    assert isinstance(place.access, VendedTable)
    assert [asked.method for asked in unity.log] == ["GET"]
    options = place.access.storage_options()
    assert (options["aws_access_key_id"], options["aws_region"]) == ("ASIA1", "eu-north-1")
    assert place.access.storage_options() == options
    assert [asked.method for asked in unity.log] == ["GET", "POST"]
    assert "hush" not in repr(place)


def test_the_catalog_says_where_and_the_store_says_who(unity: LoopbackUnity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own")
    unity.add("main.sales.orders", "s3://lake/orders")
    store = "stores:\n  lake: {root: 's3://lake/', credential: environment}\n"
    made = of_unity(unity.url, ", credentials: stores", store)
    assert made.locate(ORDERS).access.storage_options()["aws_access_key_id"] == "AKIA"
    assert [store.root.uri for store in made.lake_stores()] == ["s3://lake"]
    assert made.access(ORDERS).uri == "s3://lake/orders"


def test_a_folder_of_this_machine_needs_no_keys(unity: LoopbackUnity, tmp_path: Path) -> None:
    unity.add("main.sales.orders", (tmp_path / "orders").as_uri())
    place = of_unity(unity.url).locate(ORDERS)
    assert (place.uri, place.access) == (str(tmp_path / "orders"), PlainAccess(str(tmp_path / "orders")))


def test_the_last_answer_is_known_to_the_next_process(unity: LoopbackUnity, known_locations: KnownLocations) -> None:
    unity.add("main.sales.orders", "s3://lake/orders")
    made = of_unity(unity.url)
    assert made.catalog_packages(lambda _: None) == ()
    made.locate(ORDERS)
    made.locate(ORDERS)
    assert len(unity.log) == 1
    packages = made.catalog_packages(lambda source: last_address(source, made.catalogs))
    assert [package.split(":")[1] for package in packages] == ["hadoop-aws"]
    assert known_locations.folder is not None
    (file,) = known_locations.folder.iterdir()
    assert "s3://lake/orders" in file.read_text()


def test_a_table_that_moved_is_found_when_the_answer_is_old(
    unity: LoopbackUnity, monkeypatch: pytest.MonkeyPatch
) -> None:
    unity.add("main.sales.orders", "s3://lake/orders")
    made, began = of_unity(unity.url), time.time()
    before = made.locate(ORDERS)
    moved = unity.add("main.sales.orders", "s3://lake/orders-2")
    assert made.locate(ORDERS) == before
    monkeypatch.setattr("time.time", lambda: began + 200)
    after = made.locate(ORDERS)
    assert (after.uri, after.table_id) == ("s3://lake/orders-2", moved.table_id)


def test_tables_that_can_not_be_mirrored(unity: LoopbackUnity) -> None:
    made = of_unity(unity.url)
    unity.add("main.sales.orders", "s3://lake/orders").data_format = "PARQUET"
    with raises(SettingError, ErrorCode.SOURCE_NOT_DELTA, match="sales.orders: in the catalog main .*external parquet"):
        made.locate(ORDERS)
    unity.add("main.sales.orders", "https://elsewhere/orders")
    with raises(
        SettingError,
        ErrorCode.SOURCE_UNREADABLE,
        match="sales.orders: its address in the catalog main is ",
    ):
        made.locate(ORDERS)


VENDED = [
    ({}, "vends no usable credentials for it: its answer has none"),
    ({"r2_temp_credentials": {"access_key_id": "hush"}}, "it vends r2_temp_credentials, for a table"),
    ({"gcp_oauth_token": {"oauth_token": "hush"}}, "it vends a Google token, which deltalake"),
    ({"azure_user_delegation_sas": {"sas_token": "hush"}}, "azure_user_delegation_sas, for a table at s3://"),
]


@pytest.mark.parametrize(("answer", "why"), VENDED)
def test_credentials_that_are_not_there_or_do_not_fit(
    unity: LoopbackUnity, answer: dict[str, dict[str, str]], why: str
) -> None:
    unity.add("main.sales.orders", "s3://lake/orders")
    unity.vend = lambda _: answer
    access = of_unity(unity.url).locate(ORDERS).access
    with raises(
        SettingError, ErrorCode.CATALOG_TABLE_REFUSED, match=f"sales.orders: the catalog main .*{why}"
    ) as error:
        access.storage_options()
    assert "credentials: stores" in error.value.next_step
    assert "hush" not in str(error.value)


def test_a_catalog_of_spark_is_asked_by_those_who_have_spark(known_locations: KnownLocations) -> None:
    made = config("{type: spark}")
    with raises_row(LOCATION_UNKNOWN, match="only Spark can ask"):
        made.locate(ORDERS)
    asked: list[tuple[str, str]] = []

    def in_spark(catalog: str, table: str) -> str:
        asked.append((catalog, table))
        return "file:/lake/orders"

    assert made.locate(ORDERS, in_spark).uri == "/lake/orders"
    assert made.locate(ORDERS).uri == "/lake/orders"
    assert asked == [("spark_catalog", "sales.orders")]
    identity = "spark None spark_catalog"
    known_locations.remember(identity, "sales.orders", TableLocation(uri="/lake/orders", said=time.time() - 1800))
    assert made.locate(ORDERS).uri == "/lake/orders"
    made.locate(ORDERS, in_spark)
    assert len(asked) == 2
    known_locations.remember(identity, "sales.orders", TableLocation(uri="/lake/orders", said=time.time() - 4000))
    with raises_row(LOCATION_UNKNOWN):
        made.locate(ORDERS)
