"""Points in a source's history, as people write them: a version, or a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mirror_assets.delta.times import CommitTimes

_TIME = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[ T](?P<clock>\d{2}:\d{2}:\d{2})(?:\.(?P<part>\d{1,3}))?)?"
    r"(?:\s*(?P<zone>Z|[+-]\d{2}:\d{2}|[A-Za-z][A-Za-z0-9_+/-]*))?"
)
_EXPECTED = "a version, or a time like 2026-01-31, 2026-01-31 18:30:00 or 2026-01-31 18:30:00.250 Europe/Berlin"


@dataclass(frozen=True)
class VersionPoint:
    """A version of the source."""

    version: int

    def __str__(self) -> str:
        """As it is written."""
        return f"version {self.version}"


@dataclass(frozen=True)
class TimePoint:
    """A time, in ms since 1970, by the clock that Delta dates commits with."""

    time_ms: int

    def __str__(self) -> str:
        """As it is written, in UTC."""
        seconds, rest = divmod(self.time_ms, 1000)
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:03d} UTC"


Point = VersionPoint | TimePoint


def parse_point(text: str) -> Point:
    """The point that the text names. Raises ValueError with what is expected."""
    stripped = text.strip()
    return VersionPoint(int(stripped)) if stripped.isdecimal() else parse_time(stripped)


def parse_time(text: str) -> TimePoint:
    """The time `yyyy-MM-dd[ HH:mm:ss[.SSS]]`, in UTC unless a zone follows.

    A day alone is its first moment, as in Delta. A zone is `Z`, an offset like `+02:00`, or a name like
    `Europe/Berlin`. Raises ValueError.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected {_EXPECTED}, got {text!r}")
    part = (match["part"] or "").ljust(3, "0")
    try:
        moment = datetime.fromisoformat(f"{match['day']} {match['clock'] or '00:00:00'}.{part}")
    except ValueError as error:
        raise ValueError(f"there is no such time as {text!r} ({error})") from None
    moment = moment.replace(tzinfo=_zone(match["zone"], text))
    return TimePoint(round(moment.timestamp() * 1000))


def first_version(point: Point, times: CommitTimes) -> int | None:
    """The version that a range from the point on begins with; None for a time after the newest commit."""
    return point.version if isinstance(point, VersionPoint) else times.first_from(point.time_ms)


def last_version(point: Point, times: CommitTimes) -> int | None:
    """The version that a range up to the point ends with; None for a time before the log begins."""
    return point.version if isinstance(point, VersionPoint) else times.last_until(point.time_ms)


def is_beyond(point: Point, times: CommitTimes) -> bool:
    """Whether the point lies after the newest commit, as Delta sees it."""
    if isinstance(point, VersionPoint):
        return point.version > times.last
    return point.time_ms > times.at(times.last)


def _zone(name: str | None, text: str) -> tzinfo:
    if name is None or name == "Z":
        return timezone.utc
    if name[0] in "+-":
        offset = datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo
        assert offset is not None  # noqa: S101 it has one
        return offset
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"{name!r} in {text!r} is no time zone; write one like Europe/Berlin or +02:00") from None
