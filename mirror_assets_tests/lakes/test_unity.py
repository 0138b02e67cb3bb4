"""The client of a Unity Catalog, against one that answers as its OpenAPI says."""

from __future__ import annotations

import socket

import pytest

from mirror_assets.errors import ErrorCode, MirrorError, RetryError, SettingError
from mirror_assets.lakes.unity import UnityClient
from mirror_assets_tests.errors import raises
from mirror_assets_tests.worlds.unity.server import Answer, LoopbackUnity, Table

SECRET = "wJalrXUtnFEMI-hush-hush"  # noqa: S105 it opens nothing


def client(unity: LoopbackUnity, *, catalog: str = "main", tries: int = 0) -> UnityClient:
    return UnityClient("ours", unity.url, catalog, "UC_TOKEN", tries=tries)


def test_a_table_as_the_catalog_has_it(unity: LoopbackUnity) -> None:
    known = unity.add("main.sales.orders", "s3://lake/orders")
    table = client(unity).table("sales.orders")
    assert (table.storage_location, table.table_id, table.is_delta) == ("s3://lake/orders", known.table_id, True)
    assert unity.log[0].agent == "mirror-assets"


@pytest.mark.parametrize(
    "told", [{"data_format": "PARQUET"}, {"data_format": None, "location": None, "table_type": "VIEW"}]
)
def test_what_is_no_delta_table(unity: LoopbackUnity, told: dict[str, str | None]) -> None:
    unity.tables["main.sales.v"] = Table("main.sales.v", **{"location": "s3://l/v", **told})  # type: ignore[arg-type]
    assert not client(unity).table("sales.v").is_delta


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_table_whose_commits_the_catalog_keeps(unity: LoopbackUnity, feature: str) -> None:
    unity.add("main.sales.a", "s3://lake/a", properties={f"delta.feature.{feature}": "supported"})
    unity.add("main.sales.b", "s3://lake/b", properties={"delta.feature.deletionVectors": "supported"})
    assert client(unity).table("sales.a").is_catalog_managed
    assert not client(unity).table("sales.b").is_catalog_managed


def test_all_pages_are_listed(unity: LoopbackUnity) -> None:
    names = [f"main.{schema}.t{number}" for schema in "abc" for number in range(5)]
    for name in names:
        unity.add(name, "s3://lake/x")
    asked = client(unity)
    assert list(asked.schemas()) == ["a", "b", "c"]
    assert [table.name for table in asked.tables("b")] == [f"t{number}" for number in range(5)]
    assert [asked.path for asked in unity.log] == ["/schemas"] * 2 + ["/tables"] * 3


def test_credentials_are_asked_for_to_read(unity: LoopbackUnity) -> None:
    table = unity.add("main.sales.orders", "s3://lake/orders")
    keys = {"access_key_id": "ASIA1", "secret_access_key": SECRET, "session_token": f"{SECRET}-2"}
    unity.vend = lambda _: {"aws_temp_credentials": keys, "expiration_time": 1_800_000_000_000}
    vended = client(unity).credentials("sales.orders", table.table_id)
    assert vended.aws_temp_credentials is not None
    assert vended.aws_temp_credentials.secret_access_key == SECRET
    assert (vended.expiration_time, vended.kinds) == (1_800_000_000_000, ("aws_temp_credentials",))
    assert SECRET not in repr(vended) + str(vended) + repr(vended.aws_temp_credentials)


REFUSALS = [
    (401, "UNAUTHENTICATED", SettingError, ErrorCode.CATALOG_REFUSED),
    (403, "PERMISSION_DENIED", SettingError, ErrorCode.CATALOG_REFUSED),
    (404, "TABLE_NOT_FOUND", SettingError, ErrorCode.CATALOG_TABLE_REFUSED),
    (400, "INVALID_ARGUMENT", SettingError, ErrorCode.CATALOG_REFUSED),
    (429, "RESOURCE_EXHAUSTED", RetryError, ErrorCode.CATALOG_UNAVAILABLE),
    (503, "TEMPORARILY_UNAVAILABLE", RetryError, ErrorCode.CATALOG_UNAVAILABLE),
]


@pytest.mark.parametrize(("status", "name", "family", "code"), REFUSALS)
def test_each_refusal_names_table_catalog_and_reason(
    unity: LoopbackUnity, status: int, name: str, family: type[MirrorError], code: ErrorCode
) -> None:
    unity.faults = [Answer.refusal(status, name, "because of that")]
    with raises(family, code, match=f"sales.orders: the catalog ours .*{name}: because of that") as refused:
        client(unity).table("sales.orders")
    assert "catalogs.ours" in refused.value.next_step


def test_no_credentials_for_external_readers(unity: LoopbackUnity) -> None:
    unity.faults = [Answer.refusal(400, "INVALID_STATE", "External data access is off")]
    with raises(SettingError, ErrorCode.CATALOG_TABLE_REFUSED, match="External data access is off") as refused:
        client(unity).credentials("sales.orders", "some-id")
    assert "credentials: stores" in refused.value.next_step


def test_a_busy_catalog_is_asked_again(unity: LoopbackUnity) -> None:
    unity.add("main.sales.orders", "s3://lake/orders")
    unity.faults = [Answer.refusal(503, "TEMPORARILY_UNAVAILABLE", "later"), None]
    assert client(unity, tries=3).table("sales.orders").name == "orders"


def test_a_catalog_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UC_TOKEN", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with raises(RetryError, ErrorCode.CATALOG_UNAVAILABLE, match="sales.orders: the catalog ours does not answer"):
        UnityClient("ours", url, "main", "UC_TOKEN", tries=0).table("sales.orders")


def test_a_token_that_is_not_there_or_not_good(unity: LoopbackUnity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UC_TOKEN", SECRET)
    with raises(SettingError, ErrorCode.CATALOG_REFUSED) as refused:
        client(unity).table("sales.orders")
    assert SECRET not in str(refused.value)
    monkeypatch.delenv("UC_TOKEN")
    with raises(SettingError, ErrorCode.CREDENTIAL_UNFIT, match="UC_TOKEN"):
        client(unity).table("sales.orders")


def test_an_answer_of_another_interface_shows_no_value(unity: LoopbackUnity) -> None:
    keys = {"aws_temp_credentials": {"access_key_id": 7, "secret_access_key": [SECRET]}}
    unity.faults = [Answer(200, keys)]
    with raises(SettingError, ErrorCode.CATALOG_REFUSED, match="aws_temp_credentials.access_key_id") as refused:
        client(unity).credentials("sales.orders", "some-id")
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_no_redirect_takes_the_token_along(unity: LoopbackUnity) -> None:
    unity.faults = [Answer(302, {})]
    with pytest.raises(MirrorError):
        client(unity).table("sales.orders")
    assert len(unity.log) == 1
