"""What a new mirror starts with: the setting `start`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from mirror_assets.source.ranges import TimePoint, VersionPoint, parse_time

_EXPECTED = "expected 'snapshot', 'latest', {version: N} or {timestamp: yyyy-MM-dd HH:mm:ss}"


class Start(str, Enum):
    """A start that needs no number."""

    SNAPSHOT = "snapshot"
    LATEST = "latest"


def _start(value: object) -> Start | VersionPoint | TimePoint:
    if isinstance(value, Start | VersionPoint | TimePoint):
        return value
    if isinstance(value, str) and value in list(Start):
        return Start(value)
    value = dict(value) if isinstance(value, tuple) else value
    (name, point), *more = list(value.items()) if isinstance(value, dict) and value else [("", None)]
    if name == "version" and isinstance(point, int) and not isinstance(point, bool) and point >= 0 and not more:
        return VersionPoint(point)
    if name == "timestamp" and isinstance(point, str) and not more:
        return parse_time(point)
    raise ValueError(f"{_EXPECTED}, got {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {below}' for name, below in value.items())}}}"
    return "nothing" if value is None else repr(value)


def _dumped(start: Start | VersionPoint | TimePoint) -> Start | tuple[tuple[str, int | str]]:
    """The setting as one value and no mapping: a table's start takes the place of the default's, they don't merge."""
    if isinstance(start, VersionPoint):
        return (("version", start.version),)
    return (("timestamp", str(start)),) if isinstance(start, TimePoint) else start


HowToStart = Annotated[Start | VersionPoint | TimePoint, BeforeValidator(_start), PlainSerializer(_dumped)]
