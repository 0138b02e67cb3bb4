"""Credentials: each kind says which variables it misses, and none shows its secret."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme
from azure.identity import (
    CertificateCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.lakes.azure_identity import CredentialKind, authority_of, credential_of
from mirror_assets_tests.errors import raises
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation

WHOLE = {
    "AZURE_TENANT_ID": "11111111-1111-1111-1111-111111111111",
    "AZURE_CLIENT_ID": "22222222-2222-2222-2222-222222222222",
    "AZURE_CLIENT_SECRET": "planted-secret",
    "AZURE_FEDERATED_TOKEN_FILE": "/run/token",
    "AZURE_CLIENT_CERTIFICATE_PATH": "/run/certificate.pem",
}
CLASSES = {
    CredentialKind.DEFAULT: DefaultAzureCredential,
    CredentialKind.MANAGED_IDENTITY: ManagedIdentityCredential,
    CredentialKind.CLIENT_SECRET: ClientSecretCredential,
    CredentialKind.WORKLOAD_IDENTITY: WorkloadIdentityCredential,
    CredentialKind.CERTIFICATE: CertificateCredential,
}


def without(*names: str) -> Mapping[str, str]:
    return {name: value for name, value in WHOLE.items() if name not in names}


@pytest.mark.parametrize("kind", CredentialKind)
def test_each_kind_is_azures_class(kind: CredentialKind, tmp_path: Path) -> None:
    pem = tmp_path / "certificate.pem"
    trustme.CA().issue_cert("reader", key_type=trustme.KeyType.RSA).private_key_and_cert_chain_pem.write_to_path(pem)
    environment = {**WHOLE, "AZURE_CLIENT_CERTIFICATE_PATH": str(pem)}
    assert isinstance(credential_of(kind, environment=environment), CLASSES[kind])


def test_a_missing_certificate_is_reported_with_its_path() -> None:
    with raises(SettingError, ErrorCode.CREDENTIAL_UNFIT, match=r"/run/certificate\.pem"):
        credential_of(CredentialKind.CERTIFICATE, environment=WHOLE)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in CredentialKind for name in kind.variables],
)
@pytest.mark.parametrize("empty", [True, False], ids=["empty", "not there"])
def test_a_missing_variable_is_named(kind: CredentialKind, name: str, empty: bool) -> None:
    environment = {**without(name), **({name: ""} if empty else {})}
    with raises(SettingError, ErrorCode.CREDENTIAL_UNFIT) as error:
        credential_of(kind, environment=environment)
    assert error.value.what == f"credential {kind.value} needs {name} in the environment."


def test_all_missing_variables_are_named_at_once() -> None:
    with raises(
        SettingError, ErrorCode.CREDENTIAL_UNFIT, match="AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET"
    ):
        credential_of(CredentialKind.CLIENT_SECRET, environment={})


@pytest.mark.parametrize("kind", [CredentialKind.DEFAULT, CredentialKind.MANAGED_IDENTITY])
def test_these_kinds_need_no_variable(kind: CredentialKind) -> None:
    credential_of(kind, environment={})


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (CredentialKind.CLIENT_SECRET, "AZURE_AUTHORITY_HOST", "http://login.example", "TLS protected"),
        (CredentialKind.WORKLOAD_IDENTITY, "AZURE_AUTHORITY_HOST", "http://login.example", "TLS protected"),
        (CredentialKind.CLIENT_SECRET, "AZURE_TENANT_ID", "no tenant/at all", "Invalid tenant ID"),
    ],
)
def test_a_variable_that_azure_does_not_take_is_named(kind: CredentialKind, name: str, value: str, words: str) -> None:
    with raises(SettingError, ErrorCode.CREDENTIAL_UNFIT, match=words) as error:
        credential_of(kind, environment={**WHOLE, name: value})
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_are_no_reason_to_trust_everybody(tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "ca.pem"
    if content:
        bundle.write_text(content)
    with raises(SettingError, ErrorCode.CERTIFICATE_REFUSED, match=r"ca\.pem"):
        credential_of(CredentialKind.CLIENT_SECRET, bundle, WHOLE)


def test_the_public_authority_is_the_usual_one() -> None:
    assert authority_of({}) == "https://login.microsoftonline.com"
    assert authority_of({"AZURE_AUTHORITY_HOST": "https://login.example/"}) == "https://login.example"


def test_a_credential_shows_no_secret() -> None:
    credential = credential_of(CredentialKind.CLIENT_SECRET, environment=WHOLE)
    assert "planted" not in f"{credential!r} {credential}"


def test_the_authority_and_its_certificate_are_those_that_were_named(onelake: LoopbackOneLake) -> None:
    credential = credential_of(CredentialKind.CLIENT_SECRET, onelake.ca, onelake.environment())
    assert credential.get_token("https://storage.azure.com/.default").token
    assert [record.operation for record in onelake.log.records] == [Operation.DISCOVERY, Operation.TOKEN]
