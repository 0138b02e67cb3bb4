"""Ranges of commits by version or time, and the times that Delta gives to commits."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mirror_assets.source.errors import LOG_GAP, RANGE_REFUSED


@dataclass(frozen=True)
class CommitTimes:
    """The times of the commits from `first` to the newest, in ms since 1970.

    Delta dates a commit by its in-commit timestamp, else by when its file was written, at least 1 ms after the previous
    commit. `written` has the latter; `in_commit` reads the former, and is None for a table without any.
    """

    first: int
    written: tuple[int, ...]
    in_commit: Callable[[int], int | None] | None = None

    @property
    def last(self) -> int:
        """The newest version."""
        return self.first + len(self.written) - 1

    def at(self, version: int) -> int:
        """Return the time of a version of the log."""
        in_commit = self.in_commit(version) if self.in_commit else None
        return self.written[version - self.first] if in_commit is None else in_commit

    def first_from(self, point: Point) -> int | None:
        """Return the first version at or after the point; None for a time after the newest commit."""
        if isinstance(point, VersionPoint):
            return point.version
        version = bisect_left(range(self.last + 1), point.time_ms, lo=self.first, key=self.at)
        return version if version <= self.last else None

    def last_until(self, point: Point) -> int | None:
        """Return the last version at or before the point; None for a time before the log begins."""
        if isinstance(point, VersionPoint):
            return point.version
        version = bisect_right(range(self.last + 1), point.time_ms, lo=self.first, key=self.at) - 1
        return version if version >= self.first else None

    def end_before(self, point: Point) -> bool:
        """Whether the point is after the newest commit, as in Delta."""
        if isinstance(point, VersionPoint):
            return point.version > self.last
        return point.time_ms > self.at(self.last)


def increasing(times: Sequence[int]) -> tuple[int, ...]:
    """Move each file time to at least 1 ms after the previous one, as Delta does."""
    adjusted: list[int] = []
    for time in times:
        adjusted.append(max(time, adjusted[-1] + 1) if adjusted else time)
    return tuple(adjusted)


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
        """As in mirror.yaml."""
        return f"version {self.version}"


@dataclass(frozen=True)
class TimePoint:
    """A time, in ms since 1970, by the clock that Delta dates commits with."""

    time_ms: int

    def __str__(self) -> str:
        """As in mirror.yaml, in UTC."""
        seconds, rest = divmod(self.time_ms, 1000)
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:03d} UTC"


Point = VersionPoint | TimePoint


def parse_point(text: str) -> Point:
    """Parse a version or a time. Raises ValueError with the expected format."""
    stripped = text.strip()
    return VersionPoint(int(stripped)) if stripped.isdecimal() else parse_time(stripped)


def parse_time(text: str) -> TimePoint:
    """Parse a time `yyyy-MM-dd[ HH:mm:ss[.SSS]]`, in UTC unless a zone follows.

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
        raise ValueError(f"no such time: {text!r} ({error})") from None
    moment = moment.replace(tzinfo=_zone(match["zone"], text))
    return TimePoint(round(moment.timestamp() * 1000))


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
        raise ValueError(f"{name!r} in {text!r} is not a time zone; write one like Europe/Berlin or +02:00") from None


@dataclass(frozen=True)
class Range:
    """Commits from `first` to `last`, both inclusive; None: from the first, to the newest.

    A range beyond the newest commit is an error, unless `clip` allows to end it there.
    """

    first: Point | None = None
    last: Point | None = None
    clip: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether it has all commits."""
        return self.first is None and self.last is None


@dataclass(frozen=True)
class Bounds:
    """The versions of a range; None if it is open. Only a clipped range can be empty, with `first` after `last`."""

    first: int | None
    last: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no commit."""
        return self.first is not None and self.first > self.last


EVERYTHING = Range()


def parse_range(first: str | None, last: str | None, *, clip: bool) -> Range:
    """Parse the range between two points. Raises ValueError."""
    return Range(parse_point(first) if first else None, parse_point(last) if last else None, clip)


def resolve(uri: str, times: CommitTimes, requested: Range) -> Bounds:
    """Resolve the range to versions of this log.

    Raises RANGE_REFUSED for a range that goes beyond the newest commit, ends before the log begins, or is reversed; and
    LogGap for a log without its newest commit.
    """
    if not times.written:
        raise LOG_GAP(uri=uri, version=times.last)
    for name, point in (("from", requested.first), ("to", requested.last)):
        if point is not None and times.end_before(point) and not requested.clip:
            raise RANGE_REFUSED(
                uri=uri,
                why=f"--{name} {point} is after its newest commit, version {times.last}",
                next_step="wait for that commit, or add --clip to end the range at the newest commit.",
            )
    first = None if requested.first is None else times.first_from(requested.first)
    if requested.first is not None and first is None:
        first = times.last + 1  # clipped: no commit of the range exists yet
    last = times.last if requested.last is None else times.last_until(requested.last)
    if last is None:
        raise RANGE_REFUSED(
            uri=uri,
            why=f"--to {requested.last} is before its log begins, at version {times.first}",
            next_step="give a later --to.",
        )
    bounds = Bounds(first, min(last, times.last))
    if first is not None and bounds.last < first <= times.last:
        raise RANGE_REFUSED(
            uri=uri,
            why=f"--from {requested.first} comes after --to {requested.last}",
            next_step="swap --from and --to.",
        )
    return bounds
