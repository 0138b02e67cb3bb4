"""Small disks in memory, for tests of what happens when one is full or read-only; they need the right to mount."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_FILLER = "filler"


@dataclass(frozen=True)
class Disk:
    """A mounted disk."""

    path: Path

    def remount(self, options: str) -> None:
        """Change it in place: `size=…`, `ro`, `rw`."""
        _run("mount", "-o", f"remount,{options}", str(self.path)).check_returncode()

    def fill(self) -> None:
        free = shutil.disk_usage(self.path).free
        with (self.path / _FILLER).open("ab") as file:
            file.write(b"x" * free)

    def free(self) -> None:
        (self.path / _FILLER).unlink()


@contextmanager
def disk(path: Path, size: str) -> Iterator[Disk]:
    """A disk of this size at `path`; skips the test where nothing may be mounted."""
    path.mkdir(parents=True, exist_ok=True)
    if _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)).returncode:
        pytest.skip("no right to mount a disk")
    try:
        yield Disk(path)
    finally:
        _run("umount", "-l", str(path)).check_returncode()


def _run(command: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which(command)
    if program is None:
        pytest.skip(f"no {command} command")
    return subprocess.run([program, *arguments], check=False, capture_output=True)
