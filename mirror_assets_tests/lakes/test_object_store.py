"""Files of object stores: listed, looked for and read, while other threads of the process go on."""

from __future__ import annotations

import threading
import time
import uuid
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileType, PyFileSystem
from werkzeug.wrappers import Request

from mirror_assets.lakes.object_store import ObjectStoreFiles
from mirror_assets_tests.worlds.lakes.s3_server import BUCKET, S3Server

_NAMES = ("plain", "a b", "ü=1", "p=a%20b", "deep/er/file")


@pytest.fixture
def files(s3: S3Server) -> tuple[PyFileSystem, ObjectStoreFiles]:
    """A folder of files, each with its name as content."""
    prefix = uuid.uuid4().hex
    for name in _NAMES:
        s3.put(BUCKET, f"{prefix}/{name}", name.encode())
    handler = ObjectStoreFiles(f"s3://{BUCKET}/{prefix}", s3.options)
    s3.forget()
    return PyFileSystem(handler), handler


def test_files_are_listed_by_their_names_as_they_are(files: tuple[PyFileSystem, ObjectStoreFiles]) -> None:
    system, _ = files
    found = system.get_file_info(FileSelector("", recursive=True))
    assert sorted((info.path, info.size) for info in found) == sorted((name, len(name.encode())) for name in _NAMES)
    shallow = system.get_file_info(FileSelector(""))
    assert {info.path: info.type for info in shallow if info.type is FileType.Directory} == {"deep": FileType.Directory}


@pytest.mark.parametrize("name", _NAMES)
def test_a_file_is_read_by_the_name_that_a_listing_has(
    name: str, files: tuple[PyFileSystem, ObjectStoreFiles], s3: S3Server
) -> None:
    system, handler = files
    assert handler.read(name) == name.encode()
    assert len(s3.requests) == 1
    with system.open_input_file(name) as file:
        assert file.read() == name.encode()


def test_a_missing_file_is_reported_as_not_found(files: tuple[PyFileSystem, ObjectStoreFiles]) -> None:
    system, handler = files
    assert [info.type for info in system.get_file_info(["none", "plain"])] == [FileType.NotFound, FileType.File]
    assert system.get_file_info(FileSelector("none", allow_not_found=True)) == []
    for read in (handler.read, system.open_input_file):
        with pytest.raises(FileNotFoundError):
            read("none")


def test_a_footer_costs_two_requests(s3: S3Server) -> None:
    rows = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(200_000)}), rows)
    key = f"{uuid.uuid4().hex}/part.parquet"
    s3.put(BUCKET, key, rows.getvalue().to_pybytes())
    s3.forget()
    system = PyFileSystem(ObjectStoreFiles(f"s3://{BUCKET}", s3.options))
    with system.open_input_file(key) as file:
        assert pq.read_metadata(file).num_rows == 200_000
    assert [request.split()[0] for request in s3.requests] == ["HEAD", "GET"]


@pytest.mark.parametrize("work", ["listed", "read", "opened", "looked for"])
def test_other_threads_go_on_while_a_store_does_not_answer(
    work: str, files: tuple[PyFileSystem, ObjectStoreFiles], s3: S3Server
) -> None:
    """deltalake's own file system fails here for all but the last: it holds Python's lock, also against this server."""
    system, handler = files
    ways = {
        "listed": lambda: system.get_file_info(FileSelector("")),
        "read": lambda: handler.read("plain"),
        "opened": lambda: system.open_input_file("plain"),
        "looked for": lambda: system.get_file_info(["plain"]),
    }

    def slow(_: Request) -> None:
        time.sleep(0.5)

    s3.fault = slow
    thread, ticks = threading.Thread(target=ways[work]), 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.01)
        ticks += 1
    assert ticks > 20


def test_a_refusal_has_the_error_code_of_the_store_and_no_secret(s3: S3Server) -> None:
    wrong = ObjectStoreFiles(f"s3://{BUCKET}", {**s3.options, "aws_secret_access_key": "hidden"})
    with pytest.raises(OSError, match="SignatureDoesNotMatch") as caught:
        wrong.read(quote("x"))
    assert "hidden" not in str(caught.value)
