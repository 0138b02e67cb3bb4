"""Determines where a mirror without a snapshot begins: the first version whose changes land."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.config import Changes, Start
from mirror_assets.errors import SettingError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.source_check import check_source
from mirror_assets.source.errors import LogGap, start_refused
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import Point, VersionPoint
from mirror_assets.source.source_state import SourceState

FIRST_EPOCH = 1


@dataclass(frozen=True)
class Beginning:
    """The first version that lands, and the source at that version; nothing before it ever lands."""

    version: int
    source: SourceState


def begins_with_snapshot(context: TableContext, epoch: int) -> bool:
    """Return whether the epoch begins with a snapshot; every epoch after the first does, regardless of `start`."""
    return epoch != FIRST_EPOCH or context.table.start is Start.SNAPSHOT


def beginning(context: TableContext, tip: SourceState, planned: int | None = None) -> Beginning:
    """Return where the first epoch begins, by `start`; `planned` is the last version of a start slice planned before.

    With `start: latest`, such a slice keeps its end when the source has moved on. Raises start_refused, also if it was
    planned for another start, and what `check_source` raises.
    """
    if isinstance(context.table.start, Start):
        version = (tip.version if planned is None else planned) + 1
    else:
        version = _version_of(context, context.table.start, tip)
    if planned is not None and 0 < version != planned + 1:
        raise _refused(context, f"the slice up to version {planned} was planned for another start")
    try:
        source = context.log.state(version) if version <= tip.version else tip
    except LogGap as error:
        raise _refused(context, f"version {error.version} can't be read any more") from error
    check_source(context.config, context.table, tip)
    changes = context.table.changes
    if changes is Changes.FEED and not source.feed_enabled:
        raise _refused(context, f"the change data feed was off at version {version}")
    if changes is Changes.ROW_TRACKING and version == 0:
        why = "row tracking compares each version with the one before; begin with a snapshot, or later"
        raise _refused(context, why)
    if changes is Changes.ROW_TRACKING and not source.metadata.row_tracking:
        raise _refused(context, f"row tracking was off at version {version}")
    return Beginning(version, source)


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
    """Return the version that `start` names. Raises start_refused if the log doesn't have it, or not all before it."""
    times = context.log.times(tip)
    version = times.first_from(start)
    if version is None:
        raise _refused(context, f"its newest commit, version {tip.version}, was made before")
    if version > tip.version + 1:
        raise _refused(context, f"its newest commit is version {tip.version}")
    may_miss = not isinstance(start, VersionPoint) and times.first > 0 and start.time_ms < times.at(times.first)
    if version < times.first or may_miss:
        raise _refused(context, f"its log begins at version {times.first}, what came before was cleaned up")
    return version


def _refused(context: TableContext, why: str) -> SettingError:
    start = context.table.start
    return start_refused(context.source, start.value if isinstance(start, Start) else str(start), why)
