"""`mirror.fabric`: the mirrored database, and what is read of it before there is one."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from mirror_assets.config import Config, ConfigInvalid, ConfigMissing, FabricConfig, load_workspace
from mirror_assets.config.load import parse_config
from mirror_assets.storage.credentials import CredentialKind

WORKSPACE, ITEM = "11111111-aaaa-4bbb-8ccc-000000000001", "22222222-aaaa-4bbb-8ccc-000000000002"
ZONE = f"landing_zone: {{onelake: {{url: 'https://onelake.dfs.fabric.microsoft.com/{WORKSPACE}/{ITEM}/Files/LandingZone'}}}}"
TABLES = "tables: {orders: {source: ./lake/orders, keys: [id]}}"


def read(fabric: str, zone: str = ZONE, **environment: str) -> Config:
    text = f"{zone}\nmirror:\n  {fabric}\n{TABLES}\n"
    return parse_config(text.encode(), Path("/etc/mirror.yaml"), environment)


def fabric_of(config: Config) -> FabricConfig:
    assert config.mirror.fabric is not None
    return config.mirror.fabric


def mistakes(fabric: str, zone: str = ZONE) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        read(fabric, zone)
    return [problem.at(Path("mirror.yaml")) for problem in caught.value.problems]


def test_two_guids_are_enough() -> None:
    fabric = fabric_of(read(f"fabric: {{workspace: {WORKSPACE.upper()}, item: {ITEM}}}"))
    assert (fabric.workspace, fabric.item) == (UUID(WORKSPACE), UUID(ITEM))
    assert (fabric.endpoint, fabric.credential) == ("https://api.fabric.microsoft.com", CredentialKind.DEFAULT)
    assert fabric.place.id == UUID(WORKSPACE)
    assert fabric.default_schema == "dbo"


def test_every_setting_may_come_from_the_environment() -> None:
    written = (
        "fabric: {workspace: '${WS}', item: '${IT}', endpoint: 'https://127.0.0.1:8443/', "
        "credential: client_secret, ca_bundle: ./ca.pem}"
    )
    fabric = fabric_of(read(written, WS=WORKSPACE, IT=ITEM))
    assert fabric.endpoint == "https://127.0.0.1:8443"
    assert fabric.credential is CredentialKind.CLIENT_SECRET
    assert fabric.ca_bundle == Path("/etc/ca.pem")


def test_the_tables_are_at_the_landing_zones_endpoint() -> None:
    zone = ZONE.replace("//onelake", "//westeurope-onelake")
    config = read(f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}}}", zone)
    address = fabric_of(config).tables(config.landing_zone.onelake)
    assert address.abfss == f"abfss://{WORKSPACE}@westeurope-onelake.dfs.fabric.microsoft.com/{ITEM}/Tables"
    assert fabric_of(config).tables(None).host == "onelake.dfs.fabric.microsoft.com"


@pytest.mark.parametrize(
    ("fabric", "mistake"),
    [
        (f"fabric: {{workspace: {WORKSPACE}}}", "3: mirror.fabric.item: this setting is missing"),
        (
            f"fabric: {{workspace: sales, item: {ITEM}}}",
            "3: mirror.fabric.workspace: expected a GUID, as in the address",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, endpoint: 'http://x'}}",
            "3: mirror.fabric.endpoint: expected",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, endpoint: 'https://u@x'}}",
            "3: mirror.fabric.endpoint: exp",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, endpoint: 'https://x/v1'}}",
            "3: mirror.fabric.endpoint: exp",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, credential: password}}",
            "3: mirror.fabric.credential: expect",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, verify: false}}",
            "3: mirror.fabric.verify: unknown setting",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}, default_schema: a.b}}",
            "3: mirror.fabric.default_schema: expected a schema's name, which can't have a dot, got 'a.b'",
        ),
        (
            f"fabric: {{workspace: {WORKSPACE}, item: {WORKSPACE}}}",
            "3: mirror.fabric: the landing zone is another item's",
        ),
        (
            f"{{path: ./m, fabric: {{workspace: {WORKSPACE}, item: {ITEM}}}}}",
            "2: mirror: give either `path` or `fabric`",
        ),
    ],
)
def test_mistakes(fabric: str, mistake: str) -> None:
    (found,) = mistakes(fabric)
    assert found.startswith(f"mirror.yaml:{mistake}")


@pytest.mark.parametrize(
    ("settings", "mistake"),
    [
        (
            "tables:\n  orders:\n    source: ./lake/orders\n    keys: [id]\n    direct_lake: {frames_of: mirror}",
            "8: tables.orders.direct_lake.frames_of: nothing checks the frames of a mirror in Fabric",
        ),
        (
            f"defaults:\n  direct_lake:\n    frames: [7]\n    frames_of: mirror\n{TABLES}",
            "7: defaults.direct_lake.frames_of: nothing checks the frames of a mirror in Fabric",
        ),
    ],
)
def test_frames_of_a_mirror_in_fabric_are_refused(settings: str, mistake: str) -> None:
    """Seen: accepted, and checked by nothing."""
    fabric = f"mirror:\n  fabric: {{workspace: {WORKSPACE}, item: {ITEM}}}"
    with pytest.raises(ConfigInvalid) as caught:
        parse_config(f"{ZONE}\n{fabric}\n{settings}\n".encode(), Path("/etc/mirror.yaml"), {})
    (found,) = [problem.at(Path("mirror.yaml")) for problem in caught.value.problems]
    assert found.startswith(f"mirror.yaml:{mistake}")
    text = f"{ZONE}\n{fabric}\n{settings}\n".replace("frames_of: mirror", "frames_of: source")
    assert parse_config(text.encode(), Path("/etc/mirror.yaml"), {}).names


def test_fabric_needs_a_landing_zone_on_onelake() -> None:
    (found,) = mistakes(f"fabric: {{workspace: {WORKSPACE}, item: {ITEM}}}", "landing_zone: {path: ./landing}")
    assert "write landing_zone.onelake" in found


def test_the_stand_ins_default_folder_is_free_for_others() -> None:
    sources = TABLES.replace("./lake/orders", "./mirror/orders")
    text = f"{ZONE}\nmirror: {{fabric: {{workspace: {WORKSPACE}, item: {ITEM}}}}}\n{sources}\n"
    assert parse_config(text.encode(), Path("/etc/mirror.yaml"), {}).names


def write(folder: Path, text: str) -> Path:
    file = folder / "mirror.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("rest", ["", "landing_zone: {onelake: {url: unknown yet}}\ntables: [mistake]\n"])
@pytest.mark.parametrize("item", ["", ", item: '${NOT_SET_YET}'"])
def test_the_workspace_is_read_while_nothing_else_is_right(tmp_path: Path, rest: str, item: str) -> None:
    file = write(tmp_path, f"mirror: {{fabric: {{workspace: {WORKSPACE}, ca_bundle: ca.pem{item}}}}}\n{rest}")
    found = load_workspace(file, {})
    assert (found.workspace, found.ca_bundle) == (UUID(WORKSPACE), tmp_path / "ca.pem")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("mirror: {path: x}\n", "mirror.fabric.workspace: this setting is missing"),
        ("mirror: {fabric: {workspace: x, retries: 5}}\n", "mirror.fabric.retries: unknown setting"),
        ("mirror: {fabric: {workspace: '${GONE}'}}\n", "the environment variable GONE is not set"),
        ("mirror: {fabric: [}\n", "this is not YAML"),
    ],
)
def test_mistakes_in_the_workspace(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(ConfigInvalid, match=mistake):
        load_workspace(write(tmp_path, text), {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing):
        load_workspace(tmp_path / "mirror.yaml", {})
