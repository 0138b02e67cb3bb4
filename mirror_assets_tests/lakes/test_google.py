"""Buckets of Google: options and settings for both readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.errors import SettingError
from mirror_assets.lakes.google import GoogleCredential, GoogleStore
from mirror_assets.lakes.lake_store import LakeAddress

_ROOT = LakeAddress.parse("gs://lake/silver")


def test_the_key_of_a_service_account_is_named_by_its_file() -> None:
    store = GoogleStore(_ROOT, GoogleCredential.KEY_FILE, key_file=Path("/keys/reader.json"))
    assert store.storage_options() == {"google_service_account": "/keys/reader.json"}
    assert store.hadoop_settings()["fs.gs.auth.service.account.json.keyfile"] == "/keys/reader.json"


def test_without_a_file_it_is_that_of_the_environment() -> None:
    environment = {"SALES_GOOGLE_APPLICATION_CREDENTIALS": "/keys/sales.json"}
    store = GoogleStore(_ROOT, GoogleCredential.KEY_FILE, env_prefix="SALES_", environment=environment)
    assert store.storage_options() == {"google_service_account": "/keys/sales.json"}
    assert "${env.SALES_GOOGLE_APPLICATION_CREDENTIALS}" in store.hadoop_settings().values()
    with pytest.raises(SettingError, match="SALES_GOOGLE_APPLICATION_CREDENTIALS"):
        GoogleStore(_ROOT, GoogleCredential.KEY_FILE, env_prefix="SALES_", environment={}).storage_options()


@pytest.mark.parametrize(
    ("credential", "kind"),
    [(GoogleCredential.DEFAULT, "APPLICATION_DEFAULT"), (GoogleCredential.ANONYMOUS, "UNAUTHENTICATED")],
)
def test_other_identities_need_no_file(credential: GoogleCredential, kind: str) -> None:
    assert GoogleStore(_ROOT, credential).hadoop_settings()["fs.gs.auth.type"] == kind
