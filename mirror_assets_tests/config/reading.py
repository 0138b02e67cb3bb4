"""Reads the text of a mirror.yaml, and the mistakes in it."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.config.errors import MISTAKES
from mirror_assets.config.load import parse_config
from mirror_assets.config.model import Config
from mirror_assets_tests.errors import raises_row

FILE = Path("/etc/mirror.yaml")


def read(text: str, **environment: str) -> Config:
    """Return the configuration."""
    return parse_config(text.encode(), FILE, environment)


def mistakes(text: str, **environment: str) -> list[str]:
    """Return the mistakes, each with its line: `7: tables.orders.keys: …`."""
    with raises_row(MISTAKES) as invalid:
        read(text, **environment)
    parts = [(str(problem.line), problem.path, problem.message) for problem in invalid.value.facts["problems"]]
    return [": ".join(filter(None, part)) for part in parts]


def mistake(text: str, **environment: str) -> str:
    """Return the only mistake."""
    (only,) = mistakes(text, **environment)
    return only
