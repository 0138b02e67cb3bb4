"""`landing_zone.onelake`: the portal's URL, and each mistake at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.composition import compose, spark_settings_of
from mirror_assets.config.model import Config
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.lakes.azure_identity import HADOOP_AZURE, CredentialKind
from mirror_assets.pipeline.spark_sessions import no_spark
from mirror_assets.zones.onelake.clients import shared_clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeConfig, Staging
from mirror_assets_tests.config.reading import mistake, read
from mirror_assets_tests.errors import raises

WORKSPACE, ITEM = "98ec4459-3486-45c8-9d24-d7b02fb718e4", "faada021-2ced-476e-b4b1-64f0e8cc0bd5"
URL = f"https://onelake.dfs.fabric.microsoft.com/{WORKSPACE}/{ITEM}/Files/LandingZone"
REST = "tables: {planes: {source: ./lake, keys: [id]}}\n"
HERE = f"url: '{URL}'"


def parsed(settings: str) -> Config:
    return read(f"landing_zone:\n  onelake: {{{settings}}}\n{REST}")


def onelake(settings: str) -> OneLakeConfig:
    place = parsed(settings).landing_zone.onelake
    assert place is not None
    return place


@pytest.mark.parametrize("settings", [HERE, f"url: '{URL}/'", f"url: '{URL.replace(ITEM, ITEM.upper())}'"])
def test_the_portals_url_names_the_place(settings: str) -> None:
    place = onelake(settings)
    assert place.address.url == URL
    assert place.address.abfss == f"abfss://{WORKSPACE}@onelake.dfs.fabric.microsoft.com/{ITEM}/Files/LandingZone"
    assert (place.staging, place.credential) == (Staging.UPLOAD, CredentialKind.DEFAULT)
    assert place.staging_path == Path("/etc/staging")


_NOT_ALONE = "onelake: expected the landing zone's URL alone: write https://"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "onelake.url: this setting is missing"),
        (HERE.replace(WORKSPACE, "Sales"), "onelake: expected the GUIDs of workspace and item"),
        (f'url: "{URL}?sig=x"', _NOT_ALONE),
        (HERE.replace("LandingZone", ".."), _NOT_ALONE),
        (f"{HERE}, staging: direct", "onelake: Spark can't use the credential `default`; set client_secret"),
        (f"{HERE}, credential: certificate, staging: direct", "onelake: Spark can't use the credential `certificate`"),
        (f"{HERE}, staging: sideways", "onelake.staging: expected 'direct' or 'upload', got 'sideways'"),
        (f"{HERE}, verify: false", "onelake.verify: unknown setting; it is one of: credential, ca_bundle, url"),
        (f"{HERE}, connection_verify: false", "onelake.connection_verify: unknown setting"),
    ],
)
def test_mistakes(settings: str, expected: str) -> None:
    assert mistake(f"landing_zone:\n  onelake: {{{settings}}}\n{REST}").startswith(f"2: landing_zone.{expected}")


@pytest.mark.parametrize("settings", [f"{{path: ./landing, onelake: {{{HERE}}}}}", "{}"])
def test_a_landing_zone_is_in_one_place(settings: str) -> None:
    assert "set either `path` or `onelake`" in mistake(f"landing_zone: {settings}\n{REST}")


def test_spark_reaches_it_only_where_it_writes_there() -> None:
    direct, upload = parsed(f"{HERE}, staging: direct, credential: client_secret"), parsed(HERE)
    assert HADOOP_AZURE in spark_settings_of(direct).filled()["spark.jars.packages"]
    assert [name for name in spark_settings_of(upload).filled() if "azure" in name] == []
    assert direct.zone.local_staging() is None
    local_staging = upload.zone.local_staging()
    assert local_staging is not None
    assert local_staging.root == f"/etc/staging/{ITEM}"


def test_a_credential_without_its_variables_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    shared_clients.cache_clear()
    with raises(
        SettingError, ErrorCode.CREDENTIAL_UNFIT, match="AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET"
    ):
        parsed(f"{HERE}, credential: client_secret").zone.open()


@pytest.mark.parametrize(("needs_zone", "seconds"), [(True, 120), (False, 20)])
def test_commands_for_which_a_person_waits_repeat_requests_for_less_time(*, needs_zone: bool, seconds: int) -> None:
    """`status`, `plan` and `validate` need no landing zone: each reports one that doesn't answer."""
    store = compose(parsed(HERE), no_spark, needs_zone=needs_zone).store
    assert isinstance(store, OneLakeStore)
    assert store._requests._policy.limit_seconds == seconds
