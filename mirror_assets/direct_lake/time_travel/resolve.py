"""Which version a point in a table's history means, by Delta's own rule, and which versions there are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from mirror_assets.direct_lake.time_travel.errors import PointBeyond
from mirror_assets.source.errors import LogGap
from mirror_assets.source.ranges import Point, TimePoint, VersionPoint
from mirror_assets.source.table_log import TableLog

_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


@dataclass(frozen=True)
class VersionTime:
    """A version, and when it was committed by the clock that Delta goes by, in ms since 1970."""

    version: int
    timestamp_ms: int

    def __str__(self) -> str:
        """As people write it."""
        return f"version {self.version} of {TimePoint(self.timestamp_ms)}"


def version_times(log: TableLog) -> tuple[VersionTime, ...]:
    """The versions that the log can put together, ascending; whether their files are still there it can't tell."""
    versions = log.versions()
    with suppress(LogGap):  # their own times, if they have them, are then read side by side
        log.commits(versions[0] + 1, versions[-1])
    return tuple(_dated(log, version) for version in versions)


def version_at(log: TableLog, point: Point) -> int:
    """The version, or for a time the last one that was committed by then.

    Raises PointBeyond for a version that the log can't put together, for a time before the first, and, as Delta does,
    for one after the last.
    """
    versions = log.versions()
    if isinstance(point, VersionPoint):
        if point.version not in versions:
            raise _beyond(log, point, versions)
        return point.version
    found = committed_by(log, point.time_ms)
    if found not in versions or log.time_ms(versions[-1]) < point.time_ms:
        raise _beyond(log, point, versions)
    return found


def committed_by(log: TableLog, time_ms: int) -> int | None:
    """The last version that was committed at or before a time, in ms since 1970, whether it can be put together or not.

    None when the log doesn't tell: it begins later, or lacks the commit behind, which may have been made by then.
    """
    known = sorted({*log.versions(), *log.logged()})
    candidates = _candidates(log, known, time_ms)
    found = candidates[: bisect_right(candidates, time_ms, key=log.time_ms)][-1:]
    is_certain = found and (found[0] + 1 in known or found[0] == known[-1] or log.time_ms(found[0]) == time_ms)
    return found[0] if is_certain else None


def _candidates(log: TableLog, versions: Sequence[int], time_ms: int) -> Sequence[int]:
    """Versions among which times ascend: in-commit timestamps may begin behind those of older commits' files."""
    metadata = log.snapshot().metadata
    began = metadata.in_commit_since
    if not began:
        return versions
    newer = time_ms >= int(metadata.configuration[_SINCE_TIME])
    return [version for version in versions if (version >= began) is newer]


def _beyond(log: TableLog, point: Point, versions: Sequence[int]) -> PointBeyond:
    first, last = _dated(log, versions[0]), _dated(log, versions[-1])
    before = [one for one in map(partial(_dated, log), versions) if _is_by(one, point)]
    if not before:
        return PointBeyond(log.uri, str(point), f"its log begins with {first}", str(first))
    if before[-1] == last:
        return PointBeyond(log.uri, str(point), f"the newest is {last}", str(last))
    return PointBeyond(log.uri, str(point), "a commit that leads to it is not in the log", str(before[-1]))


def _is_by(one: VersionTime, point: Point) -> bool:
    return one.version <= point.version if isinstance(point, VersionPoint) else one.timestamp_ms <= point.time_ms


def _dated(log: TableLog, version: int) -> VersionTime:
    return VersionTime(version, log.time_ms(version))
