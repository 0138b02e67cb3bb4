"""Buckets: options and settings for both readers, and keys that deltalake reads with."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from werkzeug.wrappers import Response

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.lakes.s3 import AwsCredential, S3Store
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, REGION, S3Server

_KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hidden"}
_ROOT = LakeAddress.parse("s3://lake/silver")


def _settings(store: S3Store) -> Mapping[str, str]:
    return {name.removeprefix("fs.s3a.bucket.lake."): value for name, value in store.hadoop_settings().items()}


def test_keys_of_the_environment_are_options_and_stay_references_for_hadoop() -> None:
    store = S3Store(_ROOT, AwsCredential.ENVIRONMENT, REGION, environment=_KEYS)
    assert store.storage_options() == {
        "aws_region": REGION,
        "aws_virtual_hosted_style_request": "true",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "hidden",
    }
    settings = _settings(store)
    assert settings["aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    assert settings["secret.key"] == "${env.AWS_SECRET_ACCESS_KEY}"
    assert "hidden" not in str(store) + str(settings)


def test_a_session_token_needs_the_provider_of_temporary_keys() -> None:
    store = S3Store(_ROOT, AwsCredential.ENVIRONMENT, environment={**_KEYS, "AWS_SESSION_TOKEN": "t"})
    assert store.storage_options()["aws_session_token"] == "t"  # noqa: S105 a value
    assert _settings(store)["aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert _settings(store)["session.token"] == "${env.AWS_SESSION_TOKEN}"


def test_a_second_account_has_variables_of_its_own() -> None:
    environment = {f"SALES_{name}": value for name, value in _KEYS.items()}
    store = S3Store(_ROOT, AwsCredential.ENVIRONMENT, env_prefix="SALES_", environment=environment)
    assert store.storage_options()["aws_access_key_id"] == "key"
    assert _settings(store)["access.key"] == "${env.SALES_AWS_ACCESS_KEY_ID}"


def test_missing_keys_are_named_when_the_table_is_read_and_not_before() -> None:
    store = S3Store(_ROOT, AwsCredential.ENVIRONMENT, env_prefix="SALES_", environment={})
    _ = store.hadoop_settings()
    with pytest.raises(SettingError, match="SALES_AWS_ACCESS_KEY_ID, SALES_AWS_SECRET_ACCESS_KEY") as caught:
        store.storage_options()
    assert caught.value.code is ErrorCode.CREDENTIAL_UNFIT


@pytest.mark.parametrize(
    ("endpoint", "path_style", "styled"),
    [
        (None, None, False),
        ("https://s3.eu-central-1.amazonaws.com", None, False),
        ("http://127.0.0.1:9000", None, True),
        ("https://minio.example.com", False, False),
        (None, True, True),
    ],
)
def test_a_server_that_is_not_aws_has_its_buckets_in_the_path(
    endpoint: str | None, path_style: bool | None, styled: bool
) -> None:
    store = S3Store(_ROOT, AwsCredential.ANONYMOUS, None, endpoint, path_style, environment={})
    assert ("aws_virtual_hosted_style_request" not in store.storage_options()) is styled
    assert (_settings(store).get("path.style.access") == "true") is styled
    assert (store.storage_options().get("aws_allow_http") == "true") is (endpoint or "").startswith("http://")


def test_region_and_endpoint_come_from_the_environment_where_they_are_not_set() -> None:
    environment = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "https://a.example.com"}
    store = S3Store(_ROOT, AwsCredential.DEFAULT, environment=environment)
    assert store.storage_options() == {"aws_region": "eu-west-1", "aws_endpoint_url": "https://a.example.com"}
    assert _settings(store)["endpoint"] == "https://a.example.com"


def test_hadoop_assumes_the_role_with_the_credential() -> None:
    role = "arn:aws:iam::123456789012:role/reader"
    settings = _settings(S3Store(_ROOT, AwsCredential.ENVIRONMENT, REGION, role=role, environment=_KEYS))
    assert settings["aws.credentials.provider"].endswith("AssumedRoleCredentialProvider")
    assert settings["assumed.role.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    assert settings["assumed.role.arn"] == role


def test_deltalake_reads_with_each_kind_of_keys(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = LakeAddress.parse(f"s3://{BUCKET}/kinds")
    write_deltalake(root.uri, pa.table({"id": [1]}), storage_options=s3.options)
    profile = tmp_path_factory.mktemp("aws") / "credentials"
    profile.write_text(f"[lake]\naws_access_key_id={s3.keys.key}\naws_secret_access_key={s3.keys.secret}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3.url)
    place = (REGION, s3.url)
    stores = {
        "environment": S3Store(root, AwsCredential.ENVIRONMENT, *place, env_prefix=PREFIX),
        "profile": S3Store(root, AwsCredential.PROFILE, *place, profile="lake"),
        "role": S3Store(root, AwsCredential.ENVIRONMENT, *place, role=s3.role, env_prefix=PREFIX),
    }
    for kind, store in stores.items():
        assert DeltaTable(root.uri, storage_options=store.storage_options()).version() == 0, kind
    assert "aws_session_token" in stores["role"].storage_options()


def test_a_missing_credential_profile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(SettingError, match=r"the AWS credential profile can't be used: .*no-such-profile"):
        S3Store(_ROOT, AwsCredential.PROFILE, profile="no-such-profile").storage_options()


def test_a_role_that_can_not_be_assumed_is_reported_without_the_secret(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", s3.url)
    nobody = "arn:aws:iam::123456789012:role/nobody"
    refused = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"
    s3.fault = lambda request: Response(refused, 403) if request.method == "POST" else None
    with pytest.raises(SettingError, match=f"to assume {nobody} can't be used: .*not you") as caught:
        S3Store(_ROOT, AwsCredential.ENVIRONMENT, REGION, role=nobody, env_prefix=PREFIX).storage_options()
    assert s3.keys.secret not in str(caught.value)
