"""Containers and workspaces: options and settings for both readers, and tokens that are valid now."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.lakes.azure import AzureCredential, AzureStore
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

_ACCOUNT = LakeAddress.parse("abfss://silver@acme.dfs.core.windows.net/lake")
_WORKSPACE = LakeAddress.parse("abfss://w@onelake.dfs.fabric.microsoft.com/i/Tables")


@pytest.fixture
def onelake_root(onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> LakeAddress:
    """The tables' folder of a new item; the environment has the principal and the authority."""
    for name, value in {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}.items():
        monkeypatch.setenv(name, value)
    item, host = onelake.new_item(), onelake.url.removeprefix("https://")
    return LakeAddress.parse(f"abfss://{item.workspace}@{host}/{item.guid}/Tables")


def test_deltalake_reads_a_workspace_by_a_token(onelake_root: LakeAddress) -> None:
    store, table = AzureStore(onelake_root, AzureCredential.CLIENT_SECRET), onelake_root.below("orders")
    write_deltalake(store.delta_uri(table), pa.table({"id": [1]}), storage_options=store.storage_options())
    assert DeltaTable(store.delta_uri(table), storage_options=store.storage_options()).version() == 0


def test_one_token_serves_all_tables(onelake_root: LakeAddress) -> None:
    first, second = (AzureStore(onelake_root.below(name), AzureCredential.CLIENT_SECRET) for name in "ab")
    assert first.storage_options()["azure_storage_token"] == second.storage_options()["azure_storage_token"]


def test_a_wrong_secret_is_reported_without_its_value(
    onelake_root: LakeAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "hidden")
    with pytest.raises(SettingError, match=r"^abfss://.* could not be reached as this identity") as caught:
        AzureStore(onelake_root, AzureCredential.CLIENT_SECRET).storage_options()
    assert caught.value.code is ErrorCode.TOKEN_REFUSED
    assert "hidden" not in str(caught.value)


def test_hadoop_knows_the_identity_by_container_and_its_kind_by_host() -> None:
    settings = AzureStore(_ACCOUNT, AzureCredential.CLIENT_SECRET, env_prefix="SALES_").hadoop_settings()
    host, secret = "acme.dfs.core.windows.net", "${env.SALES_AZURE_CLIENT_SECRET}"
    assert settings[f"fs.azure.account.auth.type.{host}"] == "OAuth"
    assert settings[f"fs.azure.account.oauth2.client.secret.silver.{host}"] == secret
    assert not any("hns" in name for name in settings)
    assert any("hns" in name for name in AzureStore(_WORKSPACE, AzureCredential.CLIENT_SECRET).hadoop_settings())


def test_a_signature_stays_in_the_environment() -> None:
    environment = {"AZURE_STORAGE_SAS_TOKEN": "sig=hidden"}
    store = AzureStore(_ACCOUNT, AzureCredential.SAS, environment=environment)
    assert store.storage_options()["azure_storage_sas_key"] == "sig=hidden"
    assert "${env.AZURE_STORAGE_SAS_TOKEN}" in store.hadoop_settings().values()
    assert "hidden" not in str(store) + str(store.hadoop_settings())
    with pytest.raises(SettingError, match="AZURE_STORAGE_SAS_TOKEN"):
        AzureStore(_ACCOUNT, AzureCredential.SAS, environment={}).storage_options()


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        (_ACCOUNT, "abfss://silver@acme.dfs.core.windows.net/lake/t"),
        (_WORKSPACE, "abfss://w@onelake.dfs.fabric.microsoft.com/i/Tables/t"),
        (LakeAddress.parse("abfss://c@127.0.0.1:4711/lake"), "abfs://c/lake/t"),
    ],
)
def test_deltalake_gets_an_address_that_it_knows(root: LakeAddress, uri: str) -> None:
    assert AzureStore(root).delta_uri(root.below("t")) == uri
