"""A `mirror-assets run` in a process group of its own, which is killed with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import mirror_assets_tests

_LIMIT = 600.0


@dataclass(frozen=True)
class End:
    """How a run ended: its exit code (that of a kill is negative), how long it took, and what it printed."""

    code: int
    seconds: float
    output: str

    @property
    def was_killed(self) -> bool:
        """Whether it died by kill -9."""
        return self.code == -signal.SIGKILL


class Run:
    """The running process; `name` tells several publishers apart."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name, self._began = name, time.monotonic()
        self._process = subprocess.Popen(
            command,
            env=inherited() | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def kill(self) -> None:
        """Kill -9, the JVM too."""
        if self.is_running:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> End:
        """Wait for the end of the process and of its JVM, which holds the output open. Raises TimeoutExpired."""
        try:
            output, _ = self._process.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.communicate()
            raise
        return End(self._process.returncode, self.seconds, output)


def inherited() -> dict[str, str]:
    """This process's environment, without what would lead a run elsewhere; tests can be imported."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("DAGSTER_", "MIRROR_", "AZURE_"))}
    return kept | {"PYTHONPATH": str(Path(mirror_assets_tests.__file__).parents[1])}
