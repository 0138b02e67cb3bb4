"""A Spark standalone cluster on this machine: one master and some workers, each a process of its own.

Nothing on its workers finds a Python: what runs there is the JVM's alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from mirror_assets_tests.quick_jvm import ENVIRONMENT

_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
_HOST = "127.0.0.1"
_LIMIT = 60.0
NO_PYTHON = "/no/python/here"


class ClusterDown(Exception):
    """A process of the cluster did not come up."""


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The URL of the master of a running cluster; its processes end with the context.

    Each worker has an address of its own: Spark runs no speculative task on the host of the first.
    """
    port = _free_port()
    url = f"spark://{_HOST}:{port}"
    with ExitStack() as processes:
        processes.enter_context(_process(folder / "master", "master.Master", "--port", str(port)))
        for number in range(workers):
            context = folder / f"worker-{number}"
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(context))
            host = f"127.0.0.{number + 2}"
            processes.enter_context(_process(context, "worker.Worker", *options, url, host=host))
        _wait_for(folder / "master", "Registering worker", workers)
        yield url


def executors(folder: Path) -> list[int]:
    """Process ids of the executors that run for the cluster in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            place = (process / "cwd").resolve()
        except OSError:
            continue  # it has ended
        if "CoarseGrainedExecutorBackend" in command and folder in place.parents:
            found.append(int(process.name))
    return found


@contextmanager
def _process(folder: Path, name: str, *options: str, host: str = _HOST) -> Iterator[None]:
    folder.mkdir(parents=True)
    command = [str(_HOME / "bin" / "spark-class"), f"{_DEPLOY}.{name}", "--host", host, "--webui-port", "0", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=_environment(), stdout=log, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_LIMIT)


def _environment() -> Mapping[str, str]:
    """What a process of the cluster needs: a JVM, and no Python."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    return kept | ENVIRONMENT | {"SPARK_HOME": str(_HOME), "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": NO_PYTHON}


def _wait_for(folder: Path, text: str, times: int) -> None:
    """Return when the process has logged the text so many times. Raises ClusterDown."""
    until = time.monotonic() + _LIMIT
    while (log := (folder / "log").read_text(errors="replace")).count(text) < times:
        if time.monotonic() > until:
            raise ClusterDown(log[-2000:])
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
