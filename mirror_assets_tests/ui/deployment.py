"""The three services of a deployment, as the units of systemd start them, and a supervisor that keeps them."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.dev_server import PROJECT, DagsterHome, DevServer, are_healthy, is_loaded, started
from benchmarks.postgres import free_port

_DEPLOY = PROJECT / "deploy"
_LOADED_AT = "{ workspaceOrError { ... on Workspace { locationEntries { updatedTimestamp } } } }"
_RESTARTS_WITHIN_SECONDS = 120
_START = re.compile(r"^ExecStart=(.*)$", re.MULTILINE)


@contextmanager
def supervised(home: DagsterHome) -> Iterator[DevServer]:
    """Start the services on ports of their own; whatever dies is started again a second later."""
    code, pages = free_port(), free_port()
    file = home.folder / "workspace.yaml"
    workspace = (_DEPLOY / "workspace.yaml").read_text(encoding="utf-8")
    workspace = workspace.replace("{env: MIRROR_CODE_HOST}", "127.0.0.1").replace("{env: MIRROR_CODE_PORT}", str(code))
    file.write_text(workspace, encoding="utf-8")
    ports = {"${MIRROR_CODE_PORT}": str(code), "3000": str(pages), "/etc/mirror-assets/workspace.yaml": str(file)}
    units = [unit.read_text(encoding="utf-8") for unit in sorted((_DEPLOY / "systemd").glob("*.service"))]
    commands = [command for unit in units for command in _START.findall(unit)]
    services = " & ".join(f"while :; do {_ours(command, ports)}; sleep 1; done" for command in commands)
    with started(["bash", "-c", services], home, pages) as waiting:
        loaded = waiting.until(_is_loaded)
        yield DevServer(pages, loaded, waiting.until(are_healthy))


def loaded_at(server: DevServer) -> float:
    """When the webserver loaded the definitions last (seconds since 1970)."""
    (entry,) = server.graphql(_LOADED_AT)["workspaceOrError"]["locationEntries"]
    return float(entry["updatedTimestamp"])


def wait_until_reloaded(server: DevServer, before: float) -> None:
    """Wait until the webserver has definitions that were loaded later than `before`. Raises TimeoutError."""
    deadline = time.monotonic() + _RESTARTS_WITHIN_SECONDS
    while not (_is_loaded(server.url) and loaded_at(server) > before):
        if time.monotonic() > deadline:
            message = f"no definitions after {_RESTARTS_WITHIN_SECONDS} s"
            raise TimeoutError(message)
        time.sleep(0.5)


def _is_loaded(url: str) -> bool:
    """Whether the webserver has the definitions; at first it may be there before the code server."""
    try:
        return is_loaded(url)
    except RuntimeError:
        return False


def _ours(command: str, changed: dict[str, str]) -> str:
    """The command with this environment's programs, and other values."""
    program, *words = shlex.split(command)
    return shlex.join(
        [str(Path(sys.executable).with_name(Path(program).name)), *(changed.get(word, word) for word in words)]
    )
