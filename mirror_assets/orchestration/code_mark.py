"""Marks definitions, so that a run is replaced when it was started for others."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path

from mirror_assets.config import Config
from mirror_assets.orchestration.dagster_internals import CodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin

_PACKAGE = Path(__file__).parents[1]
_LOADED = uuid.uuid4().hex


def code_mark(origin: CodeLocationOrigin | None, config: Config, found: str = "") -> str:
    """Return the mark of the definitions that the process at `origin` has loaded.

    Each load has its own mark, because it may have other settings, other code, or another environment; so have other
    tables that were found since (`found`). A daemon that serves a module without a code server starts a process for it
    each minute: there, the mark is a digest of the code, the settings and the daemon's process.
    """
    if not isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin):
        return found or _LOADED
    loaded = hashlib.sha256(f"{os.getppid()} {config.model_dump_json()}".encode())
    for file in sorted(_PACKAGE.rglob("*.py")):
        about = file.stat()
        loaded.update(f"{file} {about.st_mtime_ns} {about.st_size}".encode())
    return loaded.hexdigest()[:32]
