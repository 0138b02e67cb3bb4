"""Ranges of commits by version or time, and the times that Delta gives to commits."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mirror_assets.source.errors import LogGap, RangeRefused


@dataclass(frozen=True)
class CommitTimes:
    """The times of the commits from `first` to the newest, in ms since 1970.

    Delta dates a commit by its in-commit timestamp, else by when its file was written, at least 1 ms after the one
    before. `written` has the latter; `in_commit` reads the former, and is None for a table without any.
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
        told = self.in_commit(version) if self.in_commit else None
        return self.written[version - self.first] if told is None else told

    def first_from(self, time_ms: int) -> int | None:
        """Return the first commit made at or after the time, or None when there is none yet."""
        index = bisect_left(range(len(self.written)), time_ms, key=self._at_index)
        return self.first + index if index < len(self.written) else None

    def last_until(self, time_ms: int) -> int | None:
        """Return the last commit made at or before the time, or None when the log begins later."""
        index = bisect_right(range(len(self.written)), time_ms, key=self._at_index)
        return self.first + index - 1 if index else None

    def _at_index(self, index: int) -> int:
        return self.at(self.first + index)


def increasing(times: Sequence[int]) -> tuple[int, ...]:
    """Move each file time to at least 1 ms after the one before, as Delta does."""
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
    """Parse a version or a time. Raises ValueError with what is expected."""
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
        raise ValueError(f"there is no such time as {text!r} ({error})") from None
    moment = moment.replace(tzinfo=_zone(match["zone"], text))
    return TimePoint(round(moment.timestamp() * 1000))


def first_version(point: Point, times: CommitTimes) -> int | None:
    """Return the first version of a range that starts at the point; None for a time after the newest commit."""
    return point.version if isinstance(point, VersionPoint) else times.first_from(point.time_ms)


def last_version(point: Point, times: CommitTimes) -> int | None:
    """Return the last version of a range that ends at the point; None for a time before the log begins."""
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


@dataclass(frozen=True)
class Range:
    """Commits from `first` to `last`, both inclusive; None: from the first, to the newest.

    A range that goes beyond the newest commit is an error, unless it may be `clip`ped to what is there.
    """

    first: Point | None = None
    last: Point | None = None
    clip: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether it leaves nothing out."""
        return self.first is None and self.last is None


@dataclass(frozen=True)
class Bounds:
    """The versions of a range; None where it is open. It is empty when `first` is behind `last`, by a clip only."""

    first: int | None
    last: int

    @property
    def is_empty(self) -> bool:
        """Whether no commit is in it."""
        return self.first is not None and self.first > self.last


EVERYTHING = Range()


def parse_range(first: str | None, last: str | None, *, clip: bool) -> Range:
    """Parse the range between two points. Raises ValueError."""
    return Range(parse_point(first) if first else None, parse_point(last) if last else None, clip)


def resolve(uri: str, times: CommitTimes, requested: Range) -> Bounds:
    """Resolve the range to versions of this log.

    Raises RangeRefused for a range that goes beyond the newest commit, ends before the log begins, or backwards; and
    LogGap for a log without its newest commit.
    """
    if not times.written:
        raise LogGap(uri, times.last)
    for name, point in (("from", requested.first), ("to", requested.last)):
        if point is not None and is_beyond(point, times) and not requested.clip:
            raise RangeRefused(uri, f"--{name} {point} lies behind its newest commit, version {times.last}", _CLIP)
    first = None if requested.first is None else first_version(requested.first, times)
    if requested.first is not None and first is None:
        first = times.last + 1  # clipped: nothing of it is there yet
    last = times.last if requested.last is None else last_version(requested.last, times)
    if last is None:
        raise RangeRefused(uri, f"--to {requested.last} lies before its log begins, at version {times.first}", _LATER)
    bounds = Bounds(first, min(last, times.last))
    if first is not None and bounds.last < first <= times.last:
        raise RangeRefused(
            uri, f"--from {requested.first} comes after --to {requested.last}", "give them the other way round."
        )
    return bounds


_CLIP = "wait for that commit, or add --clip to take what is there."
_LATER = "give a later --to."
