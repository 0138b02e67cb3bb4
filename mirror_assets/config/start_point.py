"""Where a mirror or a reader of its source starts: at a named point, a version or a time."""

from __future__ import annotations

from enum import Enum

from pydantic import BeforeValidator

from mirror_assets.source.ranges import TimePoint, VersionPoint, parse_time


def start_among(named: type[Enum]) -> BeforeValidator:
    """Return a validator for one of these names, a version or a time."""

    def check(value: object) -> Enum | VersionPoint | TimePoint:
        if isinstance(value, named | VersionPoint | TimePoint):
            return value
        if isinstance(value, str) and value in [one.value for one in named]:
            return named(value)
        value = dict(value) if isinstance(value, tuple) else value
        (name, point), *more = list(value.items()) if isinstance(value, dict) and value else [("", None)]
        if name == "version" and isinstance(point, int) and not isinstance(point, bool) and point >= 0 and not more:
            return VersionPoint(point)
        if name == "timestamp" and isinstance(point, str) and not more:
            return parse_time(point)
        shown = "nothing" if value is None else repr(value)
        if isinstance(value, dict):
            shown = f"{{{', '.join(f'{name}: {below}' for name, below in value.items())}}}"
        names = ", ".join(repr(start.value) for start in named)
        raise ValueError(f"expected {names}, {{version: N}} or {{timestamp: yyyy-MM-dd HH:mm:ss}}, got {shown}")

    return BeforeValidator(check)


def dump_start(start: Enum | VersionPoint | TimePoint) -> Enum | tuple[tuple[str, int | str]]:
    """Return no mapping: a table's own start replaces that of the defaults, and mappings would be merged."""
    if isinstance(start, VersionPoint):
        return (("version", start.version),)
    return (("timestamp", str(start)),) if isinstance(start, TimePoint) else start
