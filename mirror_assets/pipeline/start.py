"""Where a mirror without a snapshot begins: the version from which on changes land."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.config import Changes, Start
from mirror_assets.errors import SettingError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import check_source
from mirror_assets.source.errors import LogGap, start_refused
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import CommitTimes, Point, VersionPoint
from mirror_assets.source.source_state import SourceState

FIRST_EPOCH = 1


@dataclass(frozen=True)
class Beginning:
    """The first version that lands, and the source at that version; nothing before it ever lands."""

    version: int
    source: SourceState


def begins_with_snapshot(context: TableContext, epoch: int) -> bool:
    """Return whether the epoch begins with a snapshot; every epoch after the first does, whatever `start` says."""
    return epoch != FIRST_EPOCH or context.table.start is Start.SNAPSHOT


def beginning(context: TableContext, tip: SourceState) -> Beginning:
    """Return where the first epoch begins, by `start`. Raises start_refused, and what `check_source` raises."""
    start = context.table.start
    version = tip.version + 1 if isinstance(start, Start) else _version_of(context, start, tip)
    return _beginning_at(context, version, tip)


def beginning_behind(context: TableContext, last: int, tip: SourceState) -> Beginning:
    """Return the beginning behind a start slice that ends at `last`, even if the source has moved on since.

    Raises start_refused when `start` names another version now, and what `beginning` raises.
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
    """Return why the version's changes can't be read, or None."""
    changes = context.table.changes
    if changes is Changes.FEED and not source.feed_enabled:
        return f"the change data feed was off at version {version}"
    if changes is Changes.ROW_TRACKING and version == 0:
        return "row tracking compares each version with the one before; begin with a snapshot, or later"
    if changes is Changes.ROW_TRACKING and not source.metadata.row_tracking:
        return f"row tracking was off at version {version}"
    return None


def start_slice(begins: Beginning, epoch: int) -> PlannedSlice:
    """Return the slice that covers all versions before the beginning; its one part has the columns and no rows."""
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
        assignments=(),
        parts=1,
        is_start=True,
    )


def _version_of(context: TableContext, start: Point, tip: SourceState) -> int:
    times = context.log.times(tip)
    version = times.first_from(start)
    if version is None:
        raise _refused(context, f"its newest commit, version {tip.version}, was made before")
    if version > tip.version + 1:
        raise _refused(context, f"its newest commit is version {tip.version}")
    if version < times.first or _may_miss(start, times):
        raise _refused(context, f"its log begins at version {times.first}, what came before was cleaned up")
    return version


def _may_miss(start: Point, times: CommitTimes) -> bool:
    """Return whether the log begins after the start's time, so that commits may be missing."""
    return not isinstance(start, VersionPoint) and times.first > 0 and start.time_ms < times.at(times.first)


def _refused(context: TableContext, why: str) -> SettingError:
    start = context.table.start
    return start_refused(context.source, start.value if isinstance(start, Start) else str(start), why)
