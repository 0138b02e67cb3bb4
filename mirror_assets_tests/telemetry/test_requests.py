"""Requests are counted as the servers have answered them: OneLake on loopback, and S3."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from pyarrow.fs import FileSelector, PyFileSystem

from mirror_assets.lakes.object_store import ObjectStoreFiles
from mirror_assets.zones import PathExists
from mirror_assets_tests.telemetry.scrape import scrape
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, S3Server
from mirror_assets_tests.worlds.onelake import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.faults import Drop, Fault, Moment, Reply
from mirror_assets_tests.worlds.onelake.messages import Operation
from mirror_assets_tests.worlds.onelake.stores import loopback_store


def counted(port: int) -> dict[tuple[str, str, str], int]:
    """Return requests by store, operation and status."""
    return {
        (of["store"], of["operation"], of["status"]): int(value)
        for (name, labels), value in scrape(port).items()
        if name == "mirror_store_requests_total" and (of := dict(labels))
    }


def test_answers_of_onelake_are_counted_by_method_and_status(port: int, onelake: LoopbackOneLake) -> None:
    store = loopback_store(onelake, onelake.new_item())
    onelake.faults.add(
        Fault(Reply(503, "ServerBusy"), on=Operation.HEAD), Fault(Drop(Moment.BEFORE), on=Operation.LIST)
    )
    store.create("folder/file", b"content")
    with pytest.raises(PathExists):
        store.create("folder/file", b"other")
    assert store.head("folder/file") is not None
    assert store.head("folder/none") is None
    assert len(store.list("folder")) == 1
    answered = Counter((one.method, str(one.status)) for one in onelake.log.storage if one.status is not None)
    found = counted(port)
    assert {
        (operation, status): value for (_, operation, status), value in found.items() if operation != "any"
    } == answered
    assert answered["HEAD", "503"] == 1
    assert [
        value for (_, operation, status), value in found.items() if (operation, status) == ("any", "no answer")
    ] == [1]
    assert {store for store, *_ in found} <= {"127.0.0.1", "localhost"}


def test_reads_of_a_source_in_s3_are_counted(port: int, s3: S3Server) -> None:
    prefix = uuid.uuid4().hex
    s3.put(BUCKET, f"{prefix}/one", b"1")
    handler = ObjectStoreFiles(f"s3://{BUCKET}/{prefix}", s3.options)
    system = PyFileSystem(handler)
    assert len(system.get_file_info(FileSelector(""))) == 1
    assert handler.read("one") == b"1"
    with pytest.raises(FileNotFoundError):
        handler.read("none")
    wrong = ObjectStoreFiles(f"s3://{BUCKET}", {**s3.options, "aws_secret_access_key": "hidden"})
    with pytest.raises(OSError, match="SignatureDoesNotMatch"):
        wrong.read("x")
    root = f"s3://{BUCKET}"
    assert counted(port) == {
        (root, "list", "ok"): 1,
        (root, "get", "ok"): 1,
        (root, "get", "missing"): 1,
        (root, "get", "error"): 1,
    }
