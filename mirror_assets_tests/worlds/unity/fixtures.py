"""The loopback Unity Catalog and its bucket as fixtures; what catalogs said is kept in a folder of each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.lakes import catalogs as locate
from mirror_assets.lakes.catalogs import KnownLocations
from mirror_assets_tests.worlds.lakes.s3_server import S3Server
from mirror_assets_tests.worlds.unity.bucket import LoopbackBucket
from mirror_assets_tests.worlds.unity.server import TOKEN, LoopbackUnity


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
    return fresh


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> LoopbackBucket:
    """The bucket, whose vended keys last an hour; this process has no keys of its own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return LoopbackBucket(s3)
