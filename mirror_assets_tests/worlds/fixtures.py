"""The servers of the worlds as fixtures of the whole test run; Fabric's are beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.lakes import azure
from mirror_assets.lakes import catalogs as locate
from mirror_assets.lakes.catalogs import KnownLocations
from mirror_assets.zones.onelake.clients import shared_clients
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, S3Server
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.unity.bucket import LoopbackBucket
from mirror_assets_tests.worlds.unity.server import TOKEN, LoopbackUnity


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


@pytest.fixture
def signed_in(onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> LoopbackOneLake:
    """The server, whose identity and certificate this process has."""
    for name, value in {**onelake.environment(), "SSL_CERT_FILE": str(onelake.ca)}.items():
        monkeypatch.setenv(name, value)
    return onelake


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The process's only server, with a bucket; the environment has the keys of its user."""
    with S3Server() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.keys.environment(PREFIX).items():
            environment.setenv(name, value)
        server.bucket(BUCKET)
        yield server


@pytest.fixture
def s3(s3_server: S3Server) -> Iterator[S3Server]:
    """The server without faults, and with an empty record; a fault that the test plants ends with it."""
    s3_server.forget()
    yield s3_server
    s3_server.forget()


@pytest.fixture(scope="session")
def unity_server() -> Iterator[LoopbackUnity]:
    with LoopbackUnity() as server:
        yield server


@pytest.fixture
def unity(
    unity_server: LoopbackUnity, known_locations: KnownLocations, monkeypatch: pytest.MonkeyPatch
) -> LoopbackUnity:
    """The catalog without tables, faults and log; its token is in the environment."""
    assert known_locations
    unity_server.reset()
    monkeypatch.setenv("UC_TOKEN", TOKEN)
    return unity_server


@pytest.fixture
def known_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownLocations:
    """What catalogs have said: nothing yet."""
    fresh = KnownLocations(tmp_path / "catalogs")
    monkeypatch.setattr(locate, "_KNOWN", fresh)
    locate._managed_tables.cache_clear()  # the next catalog at this address may speak another protocol
    return fresh


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> LoopbackBucket:
    """The bucket, whose vended keys last an hour; this process has no keys of its own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return LoopbackBucket(s3)
