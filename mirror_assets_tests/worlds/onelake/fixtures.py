"""The loopback OneLake as a fixture of the whole test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_assets.lakes import azure
from mirror_assets.zones.onelake.clients import shared_clients
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake


@pytest.fixture(scope="session")
def onelake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackOneLake]:
    """The run's only server; it holds what every test made."""
    with LoopbackOneLake(tmp_path_factory.mktemp("onelake")) as server:
        yield server


@pytest.fixture
def onelake(onelake_server: LoopbackOneLake) -> Iterator[LoopbackOneLake]:
    """The server without faults, and with an empty log; planted faults and credentials end with the test."""
    _reset(onelake_server)
    yield onelake_server
    _reset(onelake_server)


def _reset(server: LoopbackOneLake) -> None:
    server.reset()
    # Credentials are cached for the process, also those made of a wrong secret.
    azure._shared.cache_clear()
    shared_clients.cache_clear()
