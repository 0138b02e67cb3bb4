"""The loopback Fabric as fixtures; its tokens are those of the loopback OneLake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

_SETTINGS = """\
landing_zone:
  onelake: {{url: "{url}", credential: client_secret, ca_bundle: ca.pem}}
mirror:
  fabric: {{endpoint: "{endpoint}"}}
tables:
  shop.orders: {{source: ./lake/orders, keys: [id]}}
"""


@pytest.fixture(scope="session")
def fabric_server(
    onelake_server: LoopbackOneLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoopbackFabric]:
    with LoopbackFabric(tmp_path_factory.mktemp("fabric"), onelake_server.entra) as server:
        yield server


@pytest.fixture
def fabric(fabric_server: LoopbackFabric) -> LoopbackFabric:
    """The server with an empty workspace, without faults, and with an empty log."""
    fabric_server.reset()
    return fabric_server


@pytest.fixture
def database(
    fabric: LoopbackFabric, onelake: LoopbackOneLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LoopbackDatabase:
    """A mirrored database that is ready, in the workspace of a new item, and a mirror.yaml for both in the folder."""
    for name, value in onelake.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    item = onelake.new_item()
    fabric.interface.workspace = item.workspace
    (tmp_path / "ca.pem").write_bytes(onelake.ca.read_bytes() + fabric.ca.read_bytes())
    text = _SETTINGS.format(url=item.url, endpoint=fabric.url)
    (tmp_path / "mirror.yaml").write_text(text, encoding="utf-8")
    return fabric.interface.add(LoopbackDatabase("sales", id=item.guid))
