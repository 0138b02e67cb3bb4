"""Credentials that a catalog hands out: when they are fetched, and what both readers get."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mirror_assets.lakes.azure import AzureCredential, AzureStore
from mirror_assets.lakes.catalogs import KnownLocations, TableLocation
from mirror_assets.lakes.lake_store import LakeAddress, Scheme
from mirror_assets.lakes.s3 import AwsCredential, S3Store
from mirror_assets.lakes.unity import RenewedKeys, TemporaryCredentials, VendedKeys

AWS = TemporaryCredentials.model_validate(
    {
        "aws_temp_credentials": {"access_key_id": "ASIA1", "secret_access_key": "hush", "session_token": "hush-2"},
        "expiration_time": 2_000_000,
    }
)
AZURE = TemporaryCredentials.model_validate({"azure_user_delegation_sas": {"sas_token": "sv=1&sig=hush"}})
BUCKET = LakeAddress.parse("s3://lake/orders")


def keys_of(vended: TemporaryCredentials) -> VendedKeys:
    keys = VendedKeys.of(vended)
    assert keys is not None
    return keys


def test_keys_for_s3_take_the_place_of_the_identity_alone() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "AKIA-own", "AWS_SECRET_ACCESS_KEY": "own", "AWS_REGION": "eu-west-1"}
    store = S3Store(BUCKET, AwsCredential.PROFILE, profile="p", endpoint="http://127.0.0.1:9", environment=environment)
    assert store.with_keys(keys_of(AWS).variables).storage_options() == {
        "aws_access_key_id": "ASIA1",
        "aws_secret_access_key": "hush",
        "aws_session_token": "hush-2",
        "aws_region": "eu-west-1",
        "aws_endpoint_url": "http://127.0.0.1:9",
        "aws_allow_http": "true",
    }


def test_a_sas_for_azure() -> None:
    address = LakeAddress.parse("abfss://lake@acme.dfs.core.windows.net/orders")
    store = AzureStore(address, AzureCredential.DEFAULT, env_prefix="SALES_")
    assert store.with_keys(keys_of(AZURE).variables).storage_options() == {
        "azure_storage_account_name": "acme",
        "azure_storage_sas_key": "sv=1&sig=hush",
    }
    assert store.own_names()["fs.azure.account.auth.type"] == "fs.azure.account.auth.type.acme.dfs.core.windows.net"


def test_spark_gets_the_way_to_the_store_and_no_identity() -> None:
    store = S3Store(BUCKET, AwsCredential.ENVIRONMENT, "eu-west-1", "http://127.0.0.1:9", environment={})
    settings = store.reach_settings()
    assert settings["fs.s3a.bucket.lake.endpoint.region"] == "eu-west-1"
    assert settings["fs.s3a.bucket.lake.endpoint"] == "http://127.0.0.1:9"
    assert not [name for name in settings if "key" in name or "credentials" in name]
    assert store.own_names() == {
        "fs.s3a.aws.credentials.provider": "fs.s3a.bucket.lake.aws.credentials.provider",
    }


def test_nothing_secret_is_shown() -> None:
    for vended in (AWS, AZURE):
        assert "hush" not in repr(keys_of(vended)) + repr(vended)


@given(life=st.floats(1, 1e5), looks=st.lists(st.floats(0, 5e3), min_size=1, max_size=40))
def test_keys_are_always_good_for_a_while(life: float, looks: list[float]) -> None:
    now, made = [0.0], []

    def fetch() -> VendedKeys:
        made.append(now[0])
        return VendedKeys(Scheme.S3, {"n": str(len(made))}, ends=now[0] + life)

    renewed = RenewedKeys(fetch, lambda: now[0])
    for pause in looks:
        now[0] += pause
        ends = renewed.current().ends
        assert ends is not None
        assert ends - now[0] >= min(300.0, life / 2) * 0.999
    # None is fetched while one of less than half its life is there.
    shortest = min(life / 2, life - 300) * 0.999
    assert all(later - earlier >= shortest for earlier, later in pairwise(made))


def test_keys_without_an_end_are_kept_for_some_minutes() -> None:
    """They end all the same, and none were ever fetched again."""
    made, now = list[int](), [1000.0]

    def fetch() -> VendedKeys:
        made.append(1)
        return VendedKeys(Scheme.S3, {})

    renewed = RenewedKeys(fetch, lambda: now[0])
    assert renewed.current() is renewed.current()
    now[0] += 599
    renewed.current()
    assert len(made) == 1
    now[0] += 2
    renewed.current()
    assert len(made) == 2


def test_one_thread_fetches_for_all() -> None:
    made: list[int] = []
    gate = threading.Event()

    def fetch() -> VendedKeys:
        gate.wait(5)
        made.append(1)
        return VendedKeys(Scheme.S3, {})

    renewed = RenewedKeys(fetch)
    threads = [threading.Thread(target=renewed.current) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_locations_outlive_the_process_and_a_broken_file_is_left(tmp_path: Path) -> None:
    said = TableLocation(uri="s3://lake/orders", table_id="a", said=5.0)
    KnownLocations(tmp_path / "c").remember("unity https://h main", "sales.orders", said)
    later = KnownLocations(tmp_path / "c")
    assert later.last("unity https://h main", "sales.orders") == said
    assert later.last("unity https://h main", "sales.other") is None
    assert later.last("unity https://h other", "sales.orders") is None
    (file,) = (tmp_path / "c").iterdir()
    file.write_text("{")
    assert KnownLocations(tmp_path / "c").last("unity https://h main", "sales.orders") is None


def test_a_folder_that_can_not_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    known = KnownLocations(tmp_path / "file" / "c")
    said = TableLocation(uri="s3://lake/orders", said=5.0)
    known.remember("c", "t", said)
    assert known.last("c", "t") == said


@pytest.mark.parametrize(("age", "is_older"), [(0.0, False), (50.0, False), (200.0, True), (-50.0, True)])
def test_the_age_of_what_was_said(age: float, is_older: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert TableLocation(uri="u", said=1000.0 - age).is_older_than(100.0) is is_older
