"""Marks definitions, so that a run is replaced when it was started for others."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path

from dagster._core.remote_origin import CodeLocationOrigin, ManagedGrpcPythonEnvCodeLocationOrigin

from mirror_assets.config import Config

_PACKAGE = Path(__file__).parents[1]
_LOADED = uuid.uuid4().hex


def code_mark(origin: CodeLocationOrigin | None, config: Config, found: str = "") -> str:
    """Return the mark of the definitions that the process at `origin` has loaded.

    Another load is another mark: it may have other settings, other code, or another environment. So are other tables
    that were found since (`found`). But a daemon that serves a module by itself starts a process for it anew each
    minute: there, the mark is what was loaded, and which daemon has it.
    """
    if not isinstance(origin, ManagedGrpcPythonEnvCodeLocationOrigin):
        return found or _LOADED
    loaded = hashlib.sha256(f"{os.getppid()} {config.model_dump_json()}".encode())
    for file in sorted(_PACKAGE.rglob("*.py")):
        about = file.stat()
        loaded.update(f"{file} {about.st_mtime_ns} {about.st_size}".encode())
    return loaded.hexdigest()[:32]
