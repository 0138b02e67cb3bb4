"""Which mirror is opened, and whether Spark reaches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.composition import spark_settings_of
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.features.fabric.fabric_mirror import FabricMirror
from mirror_assets.lakes.azure_identity import HADOOP_AZURE
from mirror_assets.pipeline.project import open_mirror
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets_tests.errors import raises
from mirror_assets_tests.zones.memory import MemoryStore

URL = (
    "https://onelake.dfs.fabric.microsoft.com/11111111-aaaa-4bbb-8ccc-000000000001/"
    "22222222-aaaa-4bbb-8ccc-000000000002/Files/LandingZone"
)
ABFS = "spark.hadoop.fs.azure.account.auth.type.onelake.dfs.fabric.microsoft.com"


def config(mirror: str, zone: str = f"{{onelake: {{url: '{URL}'}}}}") -> Config:
    text = f"landing_zone: {zone}\nmirror: {mirror}\ntables: {{orders: {{source: ./lake/orders, keys: [id]}}}}\n"
    return parse_config(text.encode(), Path("/etc/mirror.yaml"), {})


def in_fabric(credential: str = "default") -> Config:
    return config("{fabric: {}}", f"{{onelake: {{url: '{URL}', credential: {credential}}}}}")


def test_the_setting_chooses() -> None:
    assert isinstance(open_mirror(config("{path: ./m}"), MemoryStore()), LocalReplicator)
    assert isinstance(open_mirror(in_fabric(), MemoryStore()), FabricMirror)


def test_a_credential_without_its_variables_is_refused_with_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_CLIENT_SECRET", raising=False)
    with raises(SettingError, ErrorCode.CREDENTIAL_UNFIT, match="AZURE_CLIENT_SECRET"):
        open_mirror(in_fabric("client_secret"), MemoryStore())


@pytest.mark.parametrize(
    ("settings", "reaches"),
    [
        (config("{path: ./m}"), False),
        (in_fabric(), False),
        (in_fabric("certificate"), False),
        (in_fabric("client_secret"), True),
        (in_fabric("managed_identity"), True),
    ],
    ids=["the stand-in", "no identity for Spark", "a certificate", "a secret", "a managed identity"],
)
def test_spark_reaches_the_mirrored_tables_where_it_has_an_identity(settings: Config, reaches: bool) -> None:
    found = spark_settings_of(settings).filled()
    assert (found.get(ABFS) == "OAuth") is reaches
    assert (HADOOP_AZURE in found["spark.jars.packages"]) is reaches
