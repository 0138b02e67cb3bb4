"""Determines where a mirror without a snapshot begins: the first version whose changes land."""

from __future__ import annotations

from mirror_assets.config.table_settings import Start
from mirror_assets.errors import SettingError
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.plan_changes import BaseState
from mirror_assets.pipeline.source_check import RECORD, check_source, condition_fingerprint, is_recorded, table_columns
from mirror_assets.source.errors import LogGap, start_refused
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.source.ranges import Point, VersionPoint
from mirror_assets.source.source_state import SourceState

FIRST_EPOCH = 1


def begins_with_snapshot(context: TableContext, epoch: int) -> bool:
    """Return whether the epoch begins with a snapshot; every epoch after the first does, regardless of `start`."""
    return epoch != FIRST_EPOCH or context.table.start is Start.SNAPSHOT


def beginning(
    context: TableContext, tip: SourceState, epoch: int, planned: int | None = None
) -> tuple[PlannedSlice | None, BaseState]:
    """Return the start slice by `start`, None from version 0 on, and the base of the first slice of changes.

    The start slice covers all versions that never land; its one part has the columns and no rows. `planned` is the last
    version of a start slice planned before: with `start: latest`, it keeps its end when the source has moved on. Raises
    start_refused, also if it was planned for another start, ColumnUnfit, and what `check_source` raises.
    """
    if isinstance(context.table.start, Start):
        version = (tip.version if planned is None else planned) + 1
    else:
        version = _version_of(context, context.table.start, tip)
    if planned is not None and 0 < version != planned + 1:
        raise _refused(context, f"the slice up to version {planned} was planned for another start")
    try:
        source = context.log.state(version) if version <= tip.version else tip
        if context.table.changes.compares_versions and 0 < version <= tip.version:
            context.log.state(version - 1)
    except LogGap as error:
        why = f"version {version} can't be read without version {error.version}, which was cleaned up"
        raise _refused(context, why, _earliest(context)) from error
    check_source(context.config, context.table, tip)
    changes = context.table.changes
    if changes.compares_versions and version == 0:
        why = f"`changes: {changes.value}` compares versions, and 0 is the first; begin with a snapshot, or later"
        raise _refused(context, why)
    if not is_recorded(changes, source.metadata):
        raise _refused(context, f"{RECORD[changes]} was off at version {version}")
    columns = {column.name: column.expression for column in table_columns(context.table, source.schema)}
    # Nothing has landed, so the schema is that of the first version to land.
    where = condition_fingerprint(context.table)
    base = BaseState(version - 1, source.schema_string, source.table_id, columns, where, is_start=True)
    if version == 0:
        return None, base
    start = PlannedSlice(
        epoch=epoch,
        first=0,
        last=version - 1,
        is_snapshot=False,
        rows=0,
        bytes=0,
        first_commit_ms=source.timestamp_ms,
        last_commit_ms=source.timestamp_ms,
        schema_string=source.schema_string,
        table_id=source.table_id,
        assignments=(),
        parts=1,
        is_start=True,
    )
    return start, base


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
        raise _refused(
            context, f"its log begins at version {times.first}, what came before was cleaned up", _earliest(context)
        )
    return version


def _earliest(context: TableContext) -> int | None:
    """Return the earliest version whose changes can be read."""
    return context.log.earliest_state(with_previous=context.table.changes.compares_versions)


def _refused(context: TableContext, why: str, readable: int | None = None) -> SettingError:
    start = context.table.start
    return start_refused(context.log.uri, start.value if isinstance(start, Start) else str(start), why, readable)
