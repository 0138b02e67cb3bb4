"""PySpark's own Spark Connect server, with Delta's JARs, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from mirror_assets.encode.session import spark_settings
from mirror_assets.encode.spark_start import QuickStart
from mirror_assets_tests import quick_jvm

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_LIMIT = 120.0


class ServerDown(Exception):
    """The server did not come up."""


@contextmanager
def connect_server(folder: Path, port: int = 0, settings: Mapping[str, str] | None = None) -> Iterator[int]:
    """The port of a running server, which is killed at the end; its log is in the folder."""
    port = port or free_port()
    wanted = {"spark.master": "local[2]", "spark.driver.memory": "1g", **(settings or {})}
    known = QuickStart.of(spark_settings(wanted)).started()
    own = {"spark.connect.grpc.binding.port": str(port), "spark.local.dir": str(folder)}
    options = [f"--conf={name}={value}" for name, value in {**known, **quick_jvm.SMALL_DATA, **own}.items() if value]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--class", _MAIN, *options, "spark-internal"],
            env=os.environ | quick_jvm.ENVIRONMENT,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    try:
        _wait_for(process, port, folder / "server.log")
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + _LIMIT
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise ServerDown(log.read_text(errors="replace")[-2_000:])


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
