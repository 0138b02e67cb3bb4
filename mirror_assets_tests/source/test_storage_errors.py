from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mirror_assets.source.access import PlainAccess
from mirror_assets.source.errors import AddressOfDatabricks, SourceNotDelta, SourceUnavailable, SourceUnreadable
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.storage_errors import translated


@contextmanager
def _answering(status: int) -> Iterator[int]:
    """A server on loopback that answers every request with the status; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _options(port: int) -> dict[str, str]:
    return {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "allow_http": "true",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_region": "x",
        "max_retries": "0",
    }


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_permission_is_a_setting_to_correct(status: int) -> None:
    with (
        _answering(status) as port,
        pytest.raises(SourceUnreadable, match=f"s3://b/t can't be read.*{status}") as caught,
    ):
        DeltaLog("s3://b/t", PlainAccess("s3://b/t", _options(port))).state()
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_store_that_is_busy_is_tried_again(status: int) -> None:
    with (
        _answering(status) as port,
        pytest.raises(SourceUnavailable, match="s3://b/t can't be read now: the store s3://b "),
    ):
        DeltaLog("s3://b/t", PlainAccess("s3://b/t", _options(port))).state()


def test_a_host_that_does_not_answer_is_tried_again() -> None:
    with _answering(200) as port:
        pass
    with pytest.raises(SourceUnavailable, match=r"gives no answer.*`endpoint` of the store"):
        DeltaLog("s3://b/t", PlainAccess("s3://b/t", _options(port))).state()


def test_an_option_that_is_wrong_is_a_setting_to_correct() -> None:
    with pytest.raises(SourceUnreadable, match="bogus"):
        DeltaLog("s3://b/t", PlainAccess("s3://b/t", {**_options(1), "timeout": "bogus"})).state()


def test_missing_credentials_are_a_setting_to_correct() -> None:
    options = {"aws_region": "x", "max_retries": "0", "aws_ec2_metadata_disabled": "true", "retry_timeout": "2s"}
    with pytest.raises(SourceUnreadable, match="no credentials were found for it"):
        DeltaLog("s3://b/t", PlainAccess("s3://b/t", options)).state()


def test_a_folder_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(SourceNotDelta, match="none is no Delta table"):
        DeltaLog(str(tmp_path / "none")).state()


@pytest.mark.parametrize("uri", ["dbfs:/mnt/lake/orders", "dbfs:///mnt/lake/orders", "DBFS:/user/hive/warehouse/t"])
@pytest.mark.parametrize("read", [lambda uri: DeltaLog(uri).state(), lambda uri: DeltaLog(uri).snapshot()])
def test_an_address_of_databricks_own_is_told_with_what_to_name_instead(
    uri: str, read: Callable[[str], object]
) -> None:
    with pytest.raises(AddressOfDatabricks, match=f"^{uri} is an address that only") as caught:
        read(uri)
    assert "dbutils.fs.mounts()" in str(caught.value)


def test_a_missing_file_passes_through() -> None:
    with pytest.raises(FileNotFoundError), translated("uri"):
        raise FileNotFoundError
