"""A version or time at the end of a table's path: `@v123` or `@yyyyMMddHHmmssSSS` (seed 003, "Delta time travel").

Delta compares the whole path first: a table whose own folder is called like that is read as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from mirror_assets.direct_lake.time_travel.errors import PointRefused
from mirror_assets.source.ranges import Point, TimePoint, VersionPoint

_VERSION = re.compile(r"(?P<path>.*)@[vV](?P<version>\d+)", re.DOTALL)
_TIME = re.compile(r"(?P<path>.*)@(?P<time>\d{17})", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class PathAt:
    """A table's path, and the point at its end; None for a path without one."""

    path: str
    point: Point | None


def parse_shorthand(text: str, zone: tzinfo = timezone.utc) -> PathAt:
    """The path, and the point that it ends with; a time is read in the zone, as Spark does in its session's.

    What doesn't end like a shorthand is a path as a whole. Raises PointRefused for 17 digits that are no time.
    """
    if time := _TIME.fullmatch(text):
        return PathAt(time["path"], TimePoint(_milliseconds(time["time"], zone)))
    if version := _VERSION.fullmatch(text):
        return PathAt(version["path"], VersionPoint(int(version["version"])))
    return PathAt(text, None)


def shorthand(path: str, point: Point, zone: tzinfo = timezone.utc) -> str:
    """The path with the point behind it, as `parse_shorthand` reads it in the same zone."""
    if isinstance(point, VersionPoint):
        return f"{path}@v{point.version}"
    moment = (_EPOCH + timedelta(milliseconds=point.time_ms)).astimezone(zone)
    return f"{path}@{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _milliseconds(digits: str, zone: tzinfo) -> int:
    try:
        moment = datetime.strptime(f"{digits}000", "%Y%m%d%H%M%S%f").replace(tzinfo=zone)
    except ValueError as error:
        raise PointRefused(f"@{digits}", f"there is no such time ({error})") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1)
