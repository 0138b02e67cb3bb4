"""Writes the mirror.yaml that mirrors the demo's lake."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mirror_assets.demo.errors import NotMadeHere

CONFIG = "mirror.yaml"


def write_config(root: Path) -> Path:
    """The path of `root/mirror.yaml`, written anew. Raises NotMadeHere for one that somebody else wrote."""
    text = (files("mirror_assets.demo") / CONFIG).read_text(encoding="utf-8")
    first_line = text.partition("\n")[0]
    path = root / CONFIG
    if path.exists() and not path.read_text(encoding="utf-8").startswith(first_line):
        raise NotMadeHere(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
