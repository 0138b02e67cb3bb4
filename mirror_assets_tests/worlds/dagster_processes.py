"""The processes of a Dagster deployment, as a supervisor keeps them: code server and daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.postgres import free_port

CODE_SERVER, DAEMON = "code server", "daemon"
_PROJECT = Path(__file__).parents[2]


@dataclass
class DagsterProcesses:
    """Both; the webserver only shows.

    `home` is DAGSTER_HOME, and gets their logs; `variables` are added to the environment. The code server `location`
    starts with the command `prefix`, such as `unshare`. The daemon also loads the code servers of `beside`.
    """

    home: Path
    variables: Mapping[str, str]
    location: str = "mirror_assets"
    prefix: Sequence[str] = ()
    beside: Sequence[DagsterProcesses] = ()
    port: int = field(default_factory=free_port)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Of both."""
        own = {"DAGSTER_HOME": str(self.home), "MIRROR_SENSORS": "on", "PYTHONPATH": str(_PROJECT)}
        return {**os.environ, **own, **self.variables}

    def supervise(self) -> None:
        """Start what does not run."""
        workspace = self.home / "workspace.yaml"
        servers = "".join(
            f"  - grpc_server: {{host: 127.0.0.1, port: {one.port}, location_name: {one.location}}}\n"
            for one in (self, *self.beside)
        )
        workspace.write_text(f"load_from:\n{servers}")
        for one in (self, *self.beside):
            one.serve()
        self._keep(DAEMON, [sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace)])

    def serve(self) -> None:
        """Start the code server unless it runs."""
        module = ["--module-name", "mirror_assets.definitions"]
        address = ["--host", "127.0.0.1", "--port", str(self.port)]
        self._keep(CODE_SERVER, [*self.prefix, sys.executable, "-m", "dagster", "api", "grpc", *address, *module])

    def kill(self, name: str) -> None:
        """Kill the process by -9."""
        process = self._processes[name]
        process.kill()
        process.wait()

    def end(self) -> None:
        """Kill both."""
        for name in self._processes:
            self.kill(name)
        for one in self.beside:
            one.end()

    def _keep(self, name: str, command: Sequence[str]) -> None:
        known = self._processes.get(name)
        if known is not None and known.poll() is None:
            return
        with (self.home / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                command, cwd=_PROJECT, env=self.environment, stdout=log, stderr=log
            )
