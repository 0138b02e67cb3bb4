"""Postgres as Debian packages it, with a database of its own in a folder for temporary files."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_USER = "postgres"
_PROGRAMS = Path("/usr/lib/postgresql")
_STARTS = 10


class PostgresMissing(Exception):
    """It is not on this machine, and can't be installed; the message says why."""


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Postgres:
    """A database server in a folder, which can be killed and started again."""

    command: Sequence[str | Path]
    folder: Path
    user: str | None
    port: int
    environment: Mapping[str, str]
    _server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Of the database; the driver is the one that dagster-postgres brings, SQLAlchemy 2.1 looks for another."""
        return f"postgresql+psycopg2://{_USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server unless it runs, and wait until it listens."""
        if self._server is not None and self._server.poll() is None:
            return
        for _ in range(_STARTS):
            with (self.folder / "log").open("ab") as log:
                self._server = subprocess.Popen(
                    self.command, user=self.user, cwd=self.folder, env=self.environment, stdout=log, stderr=log
                )
            if _listens(self.port, self._server):
                return
            time.sleep(1)  # the processes below a server that was killed end soon
        message = f"postgres does not start: {(self.folder / 'log').read_text(errors='replace')[-2000:]}"
        raise RuntimeError(message)

    def end(self, signal_: signal.Signals) -> None:
        """End the server: SIGINT waits for no client, SIGKILL for nothing."""
        if self._server is not None:
            self._server.send_signal(signal_)
            self._server.wait()


@contextmanager
def postgres(environment: Mapping[str, str]) -> Iterator[Postgres]:
    """An empty database, whose server ends with the context. Raises PostgresMissing.

    Its settings are Debian's: what is committed is on the disk.
    """
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="mirror-bench-postgres-"))
    # initdb and postgres refuse to run as root.
    user = _USER if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    port, data = free_port(), folder / "data"
    create: list[str | Path] = [programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "--no-instructions"]
    serve: list[str | Path] = [programs / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", f"{port}"]
    made = Postgres(serve, folder, user, port, environment)
    try:
        subprocess.run(create, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
        made.start()
        yield made
    finally:
        made.end(signal.SIGINT)
        shutil.rmtree(folder)


def _programs() -> Path:
    """The folder of the newest version's programs, which Debian's package brings if nobody has."""
    found = sorted(_PROGRAMS.glob("*/bin/postgres"))
    if not found:
        _install()
        found = sorted(_PROGRAMS.glob("*/bin/postgres"))
    return found[-1].parent


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        message = (
            "Postgres is not installed, and only root of a Debian system can do so here: apt-get install postgresql"
        )
        raise PostgresMissing(message)
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "postgresql"]):
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if ended.returncode:
            message = f"`{' '.join(command)}` failed: {ended.stderr.strip()}"
            raise PostgresMissing(message)


def _listens(port: int, server: subprocess.Popen[bytes]) -> bool:
    """Wait until the server listens; return False if it ends before."""
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False
