"""Servers of stores as fixtures of the whole test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, PREFIX, S3Server


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
