"""The loopback OneLake as a fixture of the whole test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_assets_tests.onelake.server import LoopbackOneLake


@pytest.fixture(scope="session")
def onelake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackOneLake]:
    """The run's only server; it holds what every test made."""
    with LoopbackOneLake(tmp_path_factory.mktemp("onelake")) as server:
        yield server


@pytest.fixture
def onelake(onelake_server: LoopbackOneLake) -> Iterator[LoopbackOneLake]:
    """The server without faults, and with an empty log; a fault that the test plants ends with it."""
    onelake_server.reset()
    yield onelake_server
    onelake_server.reset()
