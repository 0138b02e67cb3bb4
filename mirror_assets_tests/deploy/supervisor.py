"""The services of deploy/compose.yaml as processes of this machine, which a supervisor starts again when they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.dev_server import DevServer
from benchmarks.postgres import Postgres, free_port
from mirror_assets_tests.deploy.services import CODE, DAEMON, DEPLOY, WEBSERVER, Service, filled, services
from mirror_assets_tests.pages import ROOT

_STATE = """{ instance { daemonHealth { allDaemonStatuses { required healthy lastHeartbeatTime } } }
  workspaceOrError { ... on Workspace { locationEntries { loadStatus updatedTimestamp
    locationOrLoadError { __typename } } } } }"""
_HOME, _FILES = "/opt/dagster/dagster_home", "/opt/mirror"


@dataclass
class Supervisor:
    """Restarts what ends, as `restart: unless-stopped` does. A container's processes end together with its first one.

    `home` is DAGSTER_HOME. Addresses, ports and paths of the containers are replaced by those of this machine.
    """

    home: Path
    config: Path
    database: Postgres
    _ports: Mapping[str, str] = field(default_factory=lambda: {"4266": str(free_port()), "3000": str(free_port())})
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir()
        shutil.copy(DEPLOY / "dagster.yaml", self.home)
        shutil.copy(DEPLOY / "workspace.yaml", self.home)

    @property
    def server(self) -> DevServer:
        """The webserver's pages."""
        return DevServer(int(self._ports["3000"]), 0, 0)

    def supervise(self) -> None:
        """Start what does not run."""
        for name, service in services().items():
            known = self._running.get(name)
            if known is None or known.poll() is not None:
                with (self.home / f"{name}.log").open("ab") as log:
                    self._running[name] = subprocess.Popen(
                        self._here(service.command),
                        env=self._environment(service),
                        cwd=self.home,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )

    def kill(self, name: str) -> None:
        """Kill a service and its children by -9, as the end of its container does."""
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(self._running[name].pid, signal.SIGKILL)
        self._running[name].wait()

    def end(self) -> None:
        """Kill everything."""
        for name in self._running:
            self.kill(name)

    def check_health(self) -> dict[str, int]:
        """Return the exit code of each service's health check."""
        return {
            name: subprocess.run(
                self._here(one.health), env=self._environment(one), check=False, capture_output=True
            ).returncode
            for name, one in services().items()
        }

    def is_back(self, name: str, since: float) -> bool:
        """Return whether a service works that was killed at `since` (seconds since 1970)."""
        try:
            state = self.server.graphql(_STATE)
        except (OSError, RuntimeError):
            return False
        daemons = [one for one in state["instance"]["daemonHealth"]["allDaemonStatuses"] if one["required"]]
        (location,) = state["workspaceOrError"]["locationEntries"]
        loaded = location["loadStatus"] == "LOADED"
        is_loaded = loaded and location["locationOrLoadError"]["__typename"] == "RepositoryLocation"
        return {
            WEBSERVER: True,
            CODE: is_loaded and float(location["updatedTimestamp"]) > since,
            DAEMON: bool(daemons) and all(one["healthy"] and one["lastHeartbeatTime"] > since for one in daemons),
        }[name]

    def _here(self, words: tuple[str, ...]) -> list[str]:
        program = Path(sys.executable) if words[0] == "python" else Path(sys.executable).with_name(words[0])
        return [str(program), *(self._replaced(word) for word in words[1:])]

    def _environment(self, service: Service) -> dict[str, str]:
        variables = {"DAGSTER_POSTGRES_PASSWORD": "trusted", "LANDING_ZONE_URL": "unused"}
        own = {name: self._replaced(filled(value, variables)) for name, value in service.environment.items()}
        database = {"DAGSTER_POSTGRES_PORT": str(self.database.port), "DAGSTER_POSTGRES_DB": "postgres"}
        hosts = {"DAGSTER_POSTGRES_HOST": "127.0.0.1", "MIRROR_CODE_HOST": "127.0.0.1"}
        image = {"DAGSTER_HOME": str(self.home), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        return own | database | hosts | image | {"DAGSTER_POSTGRES_USER": "postgres", "HOME": os.environ["HOME"]}

    def _replaced(self, text: str) -> str:
        places = {f"{_FILES}/mirror.yaml": str(self.config), _FILES: str(self.home), _HOME: str(self.home)}
        for old, new in {**places, **self._ports, "0.0.0.0": "127.0.0.1"}.items():  # noqa: S104 inside a container
            text = text.replace(old, new)
        return text
