"""Marks definitions by their content, so that a run ends when it was started for others, and not at each reload."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mirror_assets.orchestration.mirror_assets import MirrorAssets

_PACKAGE = Path(__file__).parents[1]
# Credentials and places that mirror.yaml doesn't name.
_VARIABLES = ("AWS_", "AZURE_", "DATABRICKS_", "GOOGLE_", "MIRROR_")


def code_mark(assets: MirrorAssets) -> str:
    """Return a digest of the settings, the tables and their assets, the code, and the environment of credentials."""
    settings = assets.config.model_dump_json()
    digest = hashlib.sha256(settings.encode())
    for table in assets.config.all_tables():
        for kind in assets.kinds(table):
            digest.update(assets.key(kind, table.name).to_string().encode())
    for variable in _environment(settings):
        digest.update(variable.encode())
    digest.update(_code().encode())
    return digest.hexdigest()[:32]


def _environment(settings: str) -> Iterator[str]:
    """Yield the variables of credentials, by their prefix or because a setting is their name."""
    for name, value in sorted(os.environ.items()):
        if name.startswith(_VARIABLES) or f'"{name}"' in settings:
            yield f"{name}={value}"


@cache
def _code() -> str:
    """Return a digest of the package's files as they were when this process first asked."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        about = file.stat()
        digest.update(f"{file} {about.st_mtime_ns} {about.st_size}".encode())
    return digest.hexdigest()
