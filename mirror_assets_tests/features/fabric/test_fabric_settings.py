"""`mirror.fabric`: the mirrored database of the landing zone's URL, and what is read before there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.config.errors import CONFIG_MISSING, MISTAKES
from mirror_assets.config.load import load_section
from mirror_assets.features.fabric.fabric_settings import FabricConfig, FabricMirrorSettings
from mirror_assets_tests.config.reading import mistake, read
from mirror_assets_tests.errors import raises_row

WORKSPACE, ITEM = "11111111-aaaa-4bbb-8ccc-000000000001", "22222222-aaaa-4bbb-8ccc-000000000002"
ZONE = f"landing_zone: {{onelake: {{url: 'https://onelake.dfs.fabric.microsoft.com/{WORKSPACE}/{ITEM}/Files/LandingZone'}}}}"
TABLES = "tables: {orders: {source: ./lake/orders, keys: [id]}}"


def config(fabric: str, zone: str = ZONE, tables: str = TABLES) -> str:
    return f"{zone}\nmirror:\n  {fabric}\n{tables}\n"


def test_the_endpoint_may_come_from_the_environment() -> None:
    mirror = read(config("fabric: {endpoint: '${ENDPOINT}'}"), ENDPOINT="https://127.0.0.1:8443/").mirror
    fabric = FabricMirrorSettings.of(mirror).fabric
    assert fabric is not None
    assert fabric.endpoint == "https://127.0.0.1:8443"


def test_the_tables_are_at_the_landing_zones_endpoint() -> None:
    place = read(config("fabric: {}", ZONE.replace("//onelake", "//westeurope-onelake"))).mirror_place
    assert place is not None
    assert place.tables == f"abfss://{WORKSPACE}@westeurope-onelake.dfs.fabric.microsoft.com/{ITEM}/Tables"
    assert read(config("path: ./m")).mirror_place is None


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        ("fabric: {endpoint: 'http://x'}", "3: mirror.fabric.endpoint: expected"),
        ("fabric: {endpoint: 'https://u@x'}", "3: mirror.fabric.endpoint: expected"),
        ("fabric: {endpoint: 'https://x/v1'}", "3: mirror.fabric.endpoint: expected"),
        ("fabric: {credential: client_secret}", "3: mirror.fabric.credential: unknown setting"),
        ("fabric: {verify: false}", "3: mirror.fabric.verify: unknown setting"),
        ("fabric: {default_schema: a.b}", "3: mirror.fabric.default_schema: expected a schema's name, which"),
        ("{path: ./m, fabric: {}}", "2: mirror: set either `path` or `fabric`"),
    ],
)
def test_mistakes(fabric: str, expected: str) -> None:
    assert mistake(config(fabric)).startswith(expected)


def test_fabric_needs_a_landing_zone_on_onelake() -> None:
    found = mistake(config("fabric: {}", "landing_zone: {path: ./landing}"))
    assert found.startswith("3: mirror.fabric: Fabric mirrors a landing zone on OneLake; set landing_zone.onelake")


def test_the_stand_ins_default_folder_is_free_for_others() -> None:
    assert read(config("fabric: {}", tables=TABLES.replace("./lake/orders", "./mirror/orders"))).names


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("mirror: {fabric: {default_schema: bronze}}\n", "bronze"),
        ("mirror: {fabric: {default_schema: bronze}}\nlanding_zone: {path: '${UNSET}'}\ntables: [x]\n", "bronze"),
        ("mirror: {path: x}\n", "dbo"),
    ],
)
def test_fabric_is_read_while_nothing_else_is_right(tmp_path: Path, text: str, schema: str) -> None:
    (tmp_path / "mirror.yaml").write_text(text)
    assert load_section(FabricConfig, ("mirror", "fabric"), tmp_path / "mirror.yaml").default_schema == schema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mirror: {fabric: {retries: 5}}\n", "mirror.fabric.retries: unknown setting"),
        ("mirror: {fabric: {endpoint: '${GONE}'}}\n", "the environment variable GONE is not set"),
        ("mirror: {fabric: [}\n", "this is not YAML"),
    ],
)
def test_mistakes_before_there_is_a_landing_zone(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mirror.yaml").write_text(text)
    with raises_row(MISTAKES, match=message):
        load_section(FabricConfig, ("mirror", "fabric"), tmp_path / "mirror.yaml")
    with raises_row(CONFIG_MISSING):
        load_section(FabricConfig, ("mirror", "fabric"), tmp_path / "none.yaml")
