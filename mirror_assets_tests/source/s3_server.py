"""A server of S3's protocol, in a process of its own, which takes any key and logs its requests."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3

_ADDRESS = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")
_REQUEST = re.compile(r'"(?:\x1b\[\d+m)?(GET|HEAD) (\S+) HTTP')


@dataclass(frozen=True)
class S3Server:
    """The server's address, and the file that it logs requests to."""

    endpoint: str
    log: Path

    @property
    def options(self) -> Mapping[str, str]:
        """deltalake's options."""
        return {
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
            "aws_endpoint_url": self.endpoint,
            "aws_allow_http": "true",
        }

    def put(self, bucket: str, *keys: str) -> None:
        """Make the bucket, with an empty object for each key."""
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="someone",
            aws_secret_access_key="secret",  # noqa: S106 of a server of this machine
        )
        client.create_bucket(Bucket=bucket)
        for key in keys:
            client.put_object(Bucket=bucket, Key=key, Body=b"{}")

    def reads(self) -> list[tuple[str, str]]:
        """Return the method and the path of each GET and HEAD so far."""
        return [(found[1], found[2]) for found in _REQUEST.finditer(self.log.read_text())]


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server until the block ends; it logs into the folder."""
    log = folder / "s3.log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            yield S3Server(_address(process, log), log)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    limit = time.monotonic() + 60
    while time.monotonic() < limit and process.poll() is None:
        found = _ADDRESS.search(log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not start: {log.read_text()}")
