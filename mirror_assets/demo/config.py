"""Writes the mirror.yaml that mirrors the demo's lake."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mirror_assets.demo.errors import NotMadeHere

CONFIG = "mirror.yaml"


def write_config(root: Path, others: Path | None = None) -> Path:
    """The path of `root/mirror.yaml`, written anew; `others` is a file of settings that take the place of the demo's.

    Raises NotMadeHere for a mirror.yaml that somebody else wrote.
    """
    text = (files("mirror_assets.demo") / CONFIG).read_text(encoding="utf-8")
    if others is not None:
        text = _with_others(text, others.read_text(encoding="utf-8"))
    first_line = text.partition("\n")[0]
    path = root / CONFIG
    if path.exists() and not path.read_text(encoding="utf-8").startswith(first_line):
        raise NotMadeHere(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _with_others(text: str, others: str) -> str:
    """The demo's settings without the lines of those that the others have, then the others."""
    names = tuple(f"{line.partition(':')[0]}:" for line in others.splitlines() if line[:1].isalpha())
    kept = [line for line in text.splitlines() if not names or not line.startswith(names)]
    return "\n".join([*kept, others])
