"""Marks definitions by their content, so that a run ends when it was started for others, and not at each reload."""

from __future__ import annotations

import hashlib
import os
import sys
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
    own = {feature.module for feature in assets.config.own_features}
    digest.update(_code(tuple(sorted(own))).encode())
    return digest.hexdigest()[:32]


def _environment(settings: str) -> Iterator[str]:
    """Yield the variables of credentials, by their prefix or because a setting is their name."""
    for name, value in sorted(os.environ.items()):
        if name.startswith(_VARIABLES) or f'"{name}"' in settings:
            yield f"{name}={value}"


@cache
def _code(own: tuple[str, ...]) -> str:
    """Return a digest of the files of the package and of the project's own features, when this process first asked."""
    digest = hashlib.sha256()
    files = (sys.modules[name].__file__ for name in own if name in sys.modules)
    for file in (*sorted(_PACKAGE.rglob("*.py")), *(Path(file) for file in files if file)):
        about = file.stat()
        digest.update(f"{file} {about.st_mtime_ns} {about.st_size}".encode())
    return digest.hexdigest()
