"""Where a new mirror begins when it is given no snapshot: at a version from which on the changes land."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.config import Changes, Start
from mirror_assets.delta.errors import LogGap, StartRefused
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.delta.points import Point, VersionPoint, first_version
from mirror_assets.delta.state import SourceState
from mirror_assets.delta.times import CommitTimes
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import check_source

FIRST_EPOCH = 1


@dataclass(frozen=True)
class Beginning:
    """The first version that lands, and the source as of then; nothing before it lands, ever."""

    version: int
    source: SourceState


def begins_with_snapshot(context: TableContext, epoch: int) -> bool:
    """Whether the epoch begins with the whole table: every epoch after the first does, whatever `start` says."""
    return epoch != FIRST_EPOCH or context.table.start is Start.SNAPSHOT


def beginning(context: TableContext, tip: SourceState) -> Beginning:
    """Where the first epoch begins by its `start`. Raises StartRefused, and what the check of settings raises."""
    start = context.table.start
    version = tip.version + 1 if isinstance(start, Start) else _version_of(context, start, tip)
    return _beginning_at(context, version, tip)


def beginning_behind(context: TableContext, last: int, tip: SourceState) -> Beginning:
    """The beginning behind a start slice that was planned up to `last`, since when the tip may have moved.

    Raises StartRefused when `start` names another by now, and as above.
    """
    if context.table.start is Start.LATEST:
        return _beginning_at(context, last + 1, tip)
    begins = beginning(context, tip)
    if begins.version != last + 1:
        raise _refused(context, f"the slice up to version {last} was planned for another start")
    return begins


def _beginning_at(context: TableContext, version: int, tip: SourceState) -> Beginning:
    try:
        source = context.log.state(version) if version <= tip.version else tip
    except LogGap as error:
        raise _refused(context, f"version {error.version} can't be read any more") from error
    check_source(context.config, context.table, tip)
    if why := _unreadable(context, version, source):
        raise _refused(context, why)
    return Beginning(version, source)


def _unreadable(context: TableContext, version: int, source: SourceState) -> str | None:
    """Why the changes of the version can't be read, if they can't."""
    changes = context.table.changes
    if changes is Changes.FEED and not source.feed_enabled:
        return f"the change data feed was off at version {version}"
    if changes is Changes.ROW_TRACKING and version == 0:
        return "row tracking compares each version with the one before; begin with a snapshot, or later"
    if changes is Changes.ROW_TRACKING and not source.metadata.row_tracking:
        return f"row tracking was off at version {version}"
    return None


def start_slice(begins: Beginning, epoch: int) -> PlannedSlice:
    """The slice that covers what lies before the beginning: its only part has the columns, and no rows."""
    return PlannedSlice(
        epoch=epoch,
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


def _version_of(context: TableContext, start: Point, tip: SourceState) -> int:
    times = context.log.times(tip)
    version = first_version(start, times)
    if version is None:
        raise _refused(context, f"its newest commit, version {tip.version}, was made before")
    if version > tip.version + 1:
        raise _refused(context, f"its newest commit is version {tip.version}")
    if version < times.first or _may_miss(start, times):
        raise _refused(context, f"its log begins at version {times.first}, what came before was cleaned up")
    return version


def _may_miss(start: Point, times: CommitTimes) -> bool:
    """Whether commits made at or after a time may be gone: the log begins behind it."""
    return not isinstance(start, VersionPoint) and times.first > 0 and start.time_ms < times.at(times.first)


def _refused(context: TableContext, why: str) -> StartRefused:
    start = context.table.start
    return StartRefused(context.table.source, start.value if isinstance(start, Start) else str(start), why)
