"""Dagster's own code servers, as deployments start them: which of them load found tables by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import SensorExecutionArgs
from dagster._serdes import deserialize_value

from benchmarks.postgres import free_port
from mirror_assets.orchestration.sensors import MIRROR_SENSOR
from mirror_assets_tests.worlds.disk_lake import DiskLake

_PROJECT = Path(__file__).parents[2]
_STARTS_WITHIN_SECONDS = 90.0
# The definitions, with a scan at each tick.
_DEFINITIONS = """
from mirror_assets.definitions import defs
from mirror_assets.orchestration import sensors

sensors._SCAN_SECONDS = 0.0
"""


@dataclass(frozen=True)
class Server:
    """A code server that answers, and the instance of its runs."""

    origin: GrpcServerCodeLocationOrigin
    instance: dg.DagsterInstance

    @property
    def client(self) -> DagsterGrpcClient:
        """A new connection: the server behind a proxy may be another by now."""
        return self.origin.create_client()

    def tick(self) -> str:
        """Evaluate the sensor, as the daemon does; return why it asks for no run, or the tables of those runs."""
        answer = self.client.external_sensor_execution(
            SensorExecutionArgs(
                repository_origin=RemoteRepositoryOrigin(self.origin, "__repository__"),
                instance_ref=self.instance.get_ref(),
                sensor_name=MIRROR_SENSOR,
                last_tick_completion_time=None,
                last_run_key=None,
                cursor=None,
                log_key=None,
                timeout=60,
                last_sensor_start_time=None,
            )
        )
        data = deserialize_value(answer, SensorExecutionData)
        return data.skip_message or str([request.run_config for request in data.run_requests or []])


@contextmanager
def _server(command: list[str], lake: DiskLake, instance: dg.DagsterInstance) -> Iterator[Server]:
    port, definitions = free_port(), lake.root / "definitions.py"
    definitions.write_text(_DEFINITIONS)
    address = ["--host", "127.0.0.1", "--port", str(port), "--python-file", str(definitions)]
    environment = os.environ | {"MIRROR_CONFIG": str(lake.root / "mirror.yaml")}
    environment.pop("DAGSTER_HOME", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "dagster", *command, *address],
        cwd=_PROJECT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = Server(GrpcServerCodeLocationOrigin("127.0.0.1", port, location_name="mirror_assets"), instance)
    try:
        _until(lambda: bool(server.client.get_server_id(timeout=1)))
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _until(happened: Callable[[], bool]) -> None:
    limit = time.monotonic() + _STARTS_WITHIN_SECONDS
    while time.monotonic() < limit:
        with suppress(DagsterUserCodeUnreachableError):  # it does not listen yet
            if happened():
                return
        time.sleep(0.3)
    pytest.fail("it has not happened")


@pytest.fixture
def lake(tmp_path: Path) -> DiskLake:
    made = DiskLake(tmp_path)
    made.add("orders")
    made.configure(
        '{from: {store: lake, path: "*"}, keys: {default: [id]}}',
        "automation: {mode: batch}\n",
    )
    return made


def test_a_server_that_can_reload_does_when_a_table_is_found(lake: DiskLake) -> None:
    """`dg dev` and `dagster dev` start such servers, and so does whoever deploys `dagster code-server start`."""
    with dg.instance_for_test() as instance, _server(["code-server", "start"], lake, instance) as server:
        before = server.client.get_server_id()
        assert "'pending': ['orders']" in server.tick()
        lake.add("lines")
        server.tick()
        _until(lambda: server.client.get_server_id(timeout=1) != before)
        assert "'pending': ['lines', 'orders']" in server.tick()
        after = server.client.get_server_id()
        time.sleep(1)
        server.tick()
        assert server.client.get_server_id() == after, "nothing else is found, so nothing is loaded"


def test_a_server_that_can_not_reload_mirrors_found_tables_all_the_same(lake: DiskLake) -> None:
    with dg.instance_for_test() as instance, _server(["api", "grpc"], lake, instance) as server:
        before = server.client.get_server_id()
        assert "'pending': ['orders']" in server.tick()
        lake.add("lines")
        server.tick()
        assert "'pending': ['lines', 'orders']" in server.tick()
        assert server.client.get_server_id() == before
