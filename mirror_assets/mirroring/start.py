"""Where a new mirror begins when it is given no snapshot: at a version from which on the changes land."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.config import Changes, Start
from mirror_assets.mirroring.source import check_source
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.errors import LogGap, StartRefused
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import CommitTimes, Point, VersionPoint, first_version
from mirror_assets.source.state import SourceState

FIRST_LIFE = 1


@dataclass(frozen=True)
class Beginning:
    """The first version that lands, and the source as of then; nothing before it lands, ever."""

    version: int
    source: SourceState


def begins_with_snapshot(work: TableWork, life: int) -> bool:
    """Whether the life begins with the whole table: every life after the first does, whatever `start` says."""
    return life != FIRST_LIFE or work.table.start is Start.SNAPSHOT


def beginning(work: TableWork, tip: SourceState) -> Beginning:
    """Where the first life begins by its `start`. Raises StartRefused, and what the check of settings raises."""
    start = work.table.start
    version = tip.version + 1 if isinstance(start, Start) else _version_of(work, start, tip)
    return _beginning_at(work, version, tip)


def beginning_behind(work: TableWork, last: int, tip: SourceState) -> Beginning:
    """The beginning behind a start slice that was planned up to `last`, since when the tip may have moved.

    Raises StartRefused when `start` names another by now, and as above.
    """
    if work.table.start is Start.LATEST:
        return _beginning_at(work, last + 1, tip)
    begins = beginning(work, tip)
    if begins.version != last + 1:
        raise _refused(work, f"the slice up to version {last} was planned for another start")
    return begins


def _beginning_at(work: TableWork, version: int, tip: SourceState) -> Beginning:
    try:
        source = work.log.state(version) if version <= tip.version else tip
    except LogGap as error:
        raise _refused(work, f"version {error.version} can't be read any more") from error
    check_source(work.config, work.table, tip)
    if why := _unreadable(work, version, source):
        raise _refused(work, why)
    return Beginning(version, source)


def _unreadable(work: TableWork, version: int, source: SourceState) -> str | None:
    """Why the changes of the version can't be read, if they can't."""
    changes = work.table.changes
    if changes is Changes.FEED and not source.feed_enabled:
        return f"the change data feed was off at version {version}"
    if changes is Changes.ROW_TRACKING and version == 0:
        return "row tracking compares each version with the one before; begin with a snapshot, or later"
    if changes is Changes.ROW_TRACKING and not source.metadata.row_tracking:
        return f"row tracking was off at version {version}"
    return None


def start_slice(begins: Beginning, life: int) -> PlannedSlice:
    """The slice that covers what lies before the beginning: its only part has the columns, and no rows."""
    return PlannedSlice(
        life=life,
        first=0,
        last=begins.version - 1,
        is_snapshot=False,
        rows=0,
        bytes=0,
        first_commit_ms=begins.source.timestamp_ms,
        last_commit_ms=begins.source.timestamp_ms,
        schema_string=begins.source.schema_string,
        table_id=begins.source.table_id,
        spreads=(),
        parts=1,
        is_start=True,
    )


def _version_of(work: TableWork, start: Point, tip: SourceState) -> int:
    times = work.log.times(tip)
    version = first_version(start, times)
    if version is None:
        raise _refused(work, f"its newest commit, version {tip.version}, was made before")
    if version > tip.version + 1:
        raise _refused(work, f"its newest commit is version {tip.version}")
    if version < times.first or _may_miss(start, times):
        raise _refused(work, f"its log begins at version {times.first}, what came before was cleaned up")
    return version


def _may_miss(start: Point, times: CommitTimes) -> bool:
    """Whether commits made at or after a time may be gone: the log begins behind it."""
    return not isinstance(start, VersionPoint) and times.first > 0 and start.time_ms < times.at(times.first)


def _refused(work: TableWork, why: str) -> StartRefused:
    start = work.table.start
    return StartRefused(work.table.source, start.value if isinstance(start, Start) else str(start), why)
