"""A first load and changes on a Spark standalone cluster of several processes; the mirror equals its source.

Nothing on its workers finds a Python: what runs there is the JVM's alone.

One executor is killed while it writes parts of changes, so its tasks run again elsewhere; or Spark starts tasks twice,
to see which is sooner. Counts of what was read are then doubled, and block no right slice.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pyspark
import pytest
from deltalake import DeltaTable

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.quick_jvm import ENVIRONMENT
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.worlds.kills.process import Run
from mirror_assets_tests.worlds.kills.source import Orders

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


_CONFIG = """\
landing_zone: {{path: ./landing}}
mirror: {{path: ./mirror}}
spark:
  settings:
    spark.master: {master}
    spark.executor.memory: 512m
    spark.driver.host: 127.0.0.1
    spark.pyspark.python: {python}
    spark.eventLog.enabled: "true"
    spark.eventLog.dir: {events}
    spark.eventLog.compress: "false"
    spark.eventLog.rolling.enabled: "false"
{more}defaults:
  files: {{target_rows: {target_rows}}}
tables:
  {table}:
    source: {source}
    keys: [id]
{settings}"""
_SECONDS = 120.0
_SPECULATION = """\
    spark.speculation: "true"
    spark.speculation.interval: 10ms
    spark.speculation.multiplier: "1.01"
    spark.speculation.quantile: "0.1"
    spark.speculation.minTaskRuntime: 1ms
    spark.speculation.efficiency.enabled: "false"
    spark.locality.wait: "0"
"""


def _wait(run: Run, happened: Callable[[], object]) -> None:
    """Return when it has happened; fail with what the run printed if that takes too long."""
    deadline = time.monotonic() + _SECONDS
    while not happened():
        if not run.is_running or time.monotonic() > deadline:
            run.kill()
            raise AssertionError(run.end().output)
        time.sleep(0.02)


def _speculative_tasks(events: Path) -> int:
    texts = (path.read_text(errors="replace") for path in events.rglob("*") if path.is_file())
    lines = (line for text in texts for line in text.splitlines())
    return sum('"SparkListenerTaskStart"' in line and '"Speculative":true' in line for line in lines)


@pytest.mark.timeout(300)
@pytest.mark.long(60)
@pytest.mark.parametrize(
    ("settings", "speculates"),
    smoke_first(
        [
            ("", False),
            ("    compact: true\n", False),
            ("    where: id % 3 <> 0\n", False),
            ("    compact: true\n    where: id % 3 <> 0\n", False),
            ("", True),
        ]
    ),
)
def test_a_cluster_without_python_lands_what_equals_the_source(tmp_path: Path, settings: str, speculates: bool) -> None:
    source, yaml, zone = Orders(tmp_path / "orders"), tmp_path / "mirror.yaml", tmp_path / "landing"
    source.create(rows=3_000, files=3)
    loaded = source.tip
    source.go_on(Random(0))
    source.overwrite()
    source.overwrite()
    source.go_on(Random(3))
    tip, later = source.tip, tmp_path / "later"
    later.mkdir()
    for entry in (source.path / "_delta_log").glob("*.json"):
        if int(entry.stem) > loaded:
            entry.rename(later / entry.name)

    def covers(version: int) -> bool:
        current = drive(read_manifest(TABLE), LocalStore(zone))
        return current is not None and current.manifest.covered == version

    with standalone(tmp_path / "cluster") as master:
        events = tmp_path / "events"
        events.mkdir()
        values = {"master": master, "source": source.path, "python": NO_PYTHON, "table": TABLE, "events": events}
        more, target_rows = (_SPECULATION, 100) if speculates else ("", 500)
        text = _CONFIG.format(**values, settings=settings, more=more, target_rows=target_rows)
        yaml.write_text(text, encoding="utf-8")
        program = str(Path(sys.executable).with_name("mirror-assets"))
        run = Run("driver", [program, "run", "--follow", "--every", "100ms", "--config", str(yaml)], ENVIRONMENT)
        try:
            _wait(run, lambda: covers(loaded))
            for entry in sorted(later.iterdir()):
                entry.rename(source.path / "_delta_log" / entry.name)
            _wait(run, lambda: any((zone / "_scratchPad").glob(f"{TABLE}/*/parts/*/_temporary")))
            if not speculates:
                os.kill(executors(tmp_path / "cluster")[0], signal.SIGKILL)
            _wait(run, lambda: covers(tip))
            run.interrupt()
            end = run.end()
        finally:
            run.kill()
        assert end.code == 0, end.output
        assert "was read by files" not in end.output, "a right count was refused"
        started = [path for path in (tmp_path / "cluster").glob("worker-*/app-*/*") if path.is_dir()]
    if speculates:
        assert _speculative_tasks(events) > 0, "Spark started no task a second time"
    else:
        assert len(started) > 2, "no executor came in the place of the lost one"
    LocalReplicator(LocalStore(zone), tmp_path / "mirror").poll()
    mirrored = DeltaTable(tmp_path / "mirror" / "shop" / "orders").to_pyarrow_table().sort_by("id")
    expected = source.rows()
    if "where" in settings:
        expected = expected.filter(pa.array(expected["id"].to_numpy() % 3 != 0))
    assert mirrored.select(expected.column_names).equals(expected)
