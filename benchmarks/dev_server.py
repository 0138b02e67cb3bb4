"""`make dev` on a port and a DAGSTER_HOME of its own: the real daemon, code server and webserver."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from benchmarks.postgres import PostgresMissing, free_port, postgres
from benchmarks.processes import MARK, end_marked

_STARTS_WITHIN_SECONDS = 600
_ENDS_WITHIN_SECONDS = 30
PROJECT = Path(__file__).parent.parent
_LOADED = (
    "{ workspaceOrError { ... on Workspace { locationEntries { loadStatus locationOrLoadError { __typename } } } } }"
)
_DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { healthy required } } } }"
_SENSORS = """query($of: RepositorySelector!) {
  sensorsOrError(repositorySelector: $of) { ... on Sensors { results { name id } } } }"""
_STOP = "mutation($id: String!) { stopSensor(id: $id) { __typename } }"
_REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "mirror_assets"}


class Storage(str, Enum):
    """Where Dagster keeps its history."""

    SQLITE = "SQLite"
    POSTGRES = "Postgres"


@dataclass(frozen=True)
class DagsterHome:
    """A DAGSTER_HOME with the project's settings; processes that are started with `environment` carry its mark."""

    folder: Path
    mark: str
    config: Path

    @property
    def environment(self) -> dict[str, str]:
        """For every process that works with it."""
        own = {"DAGSTER_HOME": str(self.folder), "MIRROR_CONFIG": str(self.config), MARK: self.mark}
        return {**os.environ, **own}


@contextmanager
def dagster_home(folder: Path, config: Path, storage: Storage) -> Iterator[DagsterHome]:
    """A new home, and the database server where it needs one. Raises PostgresMissing."""
    home = DagsterHome(folder, uuid.uuid4().hex, config)
    folder.mkdir(parents=True)
    settings = (PROJECT / "deploy/dagster.yaml").read_text(encoding="utf-8")
    with ExitStack() as stack:
        if storage is Storage.POSTGRES:
            if importlib.util.find_spec("dagster_postgres") is None:
                message = "dagster-postgres is not installed: pip install dagster-postgres"
                raise PostgresMissing(message)
            url = stack.enter_context(postgres({**os.environ, MARK: home.mark})).url
            settings += f"\nstorage:\n  postgres:\n    postgres_url: {url}\n"
        (folder / "dagster.yaml").write_text(settings, encoding="utf-8")
        yield home


@dataclass(frozen=True)
class DevServer:
    """Dagster's processes, and the seconds until the webserver had the definitions and every daemon worked."""

    port: int
    loaded_seconds: float
    started_seconds: float

    @property
    def url(self) -> str:
        """Of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def graphql(self, query: str, variables: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The answer's data. Raises RuntimeError."""
        return _graphql(self.url, query, variables)

    def stop_sensor(self, name: str) -> None:
        """Stop a sensor, if there is one of that name."""
        found = self.graphql(_SENSORS, {"of": _REPOSITORY})["sensorsOrError"]["results"]
        for sensor in found:
            if sensor["name"] == name:
                self.graphql(_STOP, {"id": sensor["id"]})


@contextmanager
def dev_server(home: DagsterHome, *, sensors: bool = True) -> Iterator[DevServer]:
    """Start them as `make dev` does, and end them and all runs with the context; sensors are on or off at first.

    Raises RuntimeError if they are not there in ten minutes.
    """
    port = free_port()
    with started(_make_dev(home, port, sensors=sensors), home, port) as waiting:
        loaded = waiting.until(is_loaded)
        yield DevServer(port, loaded, waiting.until(are_healthy))


@contextmanager
def webserver(home: DagsterHome) -> Iterator[DevServer]:
    """Start the webserver and its code server alone: nothing works behind the pages. Raises as `dev_server` does."""
    port = free_port()
    options = ["--workspace", "workspace.yaml", "--host", "127.0.0.1", "--port", f"{port}"]
    with started([sys.executable, "-m", "dagster_webserver", *options], home, port) as waiting:
        loaded = waiting.until(is_loaded)
        yield DevServer(port, loaded, loaded)


@dataclass(frozen=True)
class Waiting:
    """For a program that has been started."""

    url: str
    program: subprocess.Popen[bytes]
    began: float
    log: Path

    def until(self, happened: Callable[[str], bool]) -> float:
        """Seconds since the program's start until this is so. Raises RuntimeError if it ends, or takes too long."""
        while not happened(self.url):
            if self.program.poll() is not None or time.monotonic() - self.began > _STARTS_WITHIN_SECONDS:
                told = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
                message = f"Dagster did not start: {told}"
                raise RuntimeError(message)
            time.sleep(0.2)
        return time.monotonic() - self.began


@contextmanager
def started(command: Sequence[str], home: DagsterHome, port: int) -> Iterator[Waiting]:
    """Start the program in the project's folder; with the context, it and all that it has started end."""
    log = home.folder / "dev.log"
    with log.open("wb") as out:
        program = subprocess.Popen(
            command, cwd=PROJECT, env=home.environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield Waiting(f"http://127.0.0.1:{port}", program, time.monotonic(), log)
    finally:
        end_marked(home.mark, seconds=_ENDS_WITHIN_SECONDS)
        program.wait()


def _make_dev(home: DagsterHome, port: int, *, sensors: bool) -> list[str]:
    settings = home.folder / "dagster.yaml"
    switch = [] if sensors else [f"settings=MIRROR_CONFIG={home.config} MIRROR_SENSORS=off"]
    return [
        "make",
        "dev",
        f"IN_HOME=DAGSTER_HOME={home.folder}",
        f"HOME_SETTINGS={settings}",
        # Whoever runs this has installed what it needs: no measurement begins with pip.
        f"INSTALLED={settings}",
        f"MIRROR_CONFIG={home.config}",
        *switch,
        f"ARGS=--host 127.0.0.1 --port {port} --log-level warning",
    ]


def is_loaded(url: str) -> bool:
    """Whether the webserver has the definitions. Raises RuntimeError if they can't be loaded."""
    try:
        entries = _graphql(url, _LOADED)["workspaceOrError"]["locationEntries"]
    except OSError:  # it does not listen yet
        return False
    if not entries or any(entry["loadStatus"] != "LOADED" for entry in entries):
        return False
    if any(entry["locationOrLoadError"]["__typename"] != "RepositoryLocation" for entry in entries):
        message = "the definitions can't be loaded"
        raise RuntimeError(message)
    return True


def are_healthy(url: str) -> bool:
    """Whether every daemon that is needed works."""
    daemons = _graphql(url, _DAEMONS)["instance"]["daemonHealth"]["allDaemonStatuses"]
    return bool(daemons) and all(daemon["healthy"] for daemon in daemons if daemon["required"])


def _graphql(url: str, query: str, variables: Mapping[str, object] | None = None) -> dict[str, Any]:
    body = json.dumps({"query": query, "variables": variables or {}}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310 ours
    with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 its address is above
        found = json.load(answer)
    if "errors" in found:
        raise RuntimeError(str(found["errors"])[:2000])
    data: dict[str, Any] = found["data"]
    return data
