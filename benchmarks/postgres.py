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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_USER = "postgres"
_PROGRAMS = Path("/usr/lib/postgresql")


class PostgresMissing(Exception):
    """It is not on this machine, and can't be installed; the message says why."""


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postgres(environment: Mapping[str, str]) -> Iterator[str]:
    """The URL of an empty database, whose server ends with the context. Raises PostgresMissing.

    It names the driver that dagster-postgres brings: SQLAlchemy 2.1 looks for another one by default.

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
    try:
        subprocess.run(create, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(serve, user=user, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            _wait_until_it_listens(port, server)
            yield f"postgresql+psycopg2://{_USER}@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # it waits for no client
            server.wait()
    finally:
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


def _wait_until_it_listens(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    message = f"postgres ended with {server.returncode}"
    raise RuntimeError(message)
