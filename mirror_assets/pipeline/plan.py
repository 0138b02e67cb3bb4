"""Plans a table: where its mirror begins, and the slices of its log that have not landed. No JVM."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from mirror_assets.config.table_settings import Start
from mirror_assets.errors import SettingError
from mirror_assets.landing.format import Loading, Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import CommitPosition, VersionedManifest, next_position
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE, not_one_slice, stop_error
from mirror_assets.pipeline.plan_changes import NO_LIMITS, BaseState, limits_of, plan_changes
from mirror_assets.pipeline.source_check import (
    RECORD,
    check_columns,
    check_source,
    condition_fingerprint,
    is_recorded,
    recorded_columns,
    table_columns,
)
from mirror_assets.source.batching import chunk_files, is_small
from mirror_assets.source.breaks import Break
from mirror_assets.source.commits import SourceState
from mirror_assets.source.errors import RANGE_REFUSED, LogGap, start_refused
from mirror_assets.source.planner import PlannedSlice, snapshot_slice
from mirror_assets.source.ranges import EVERYTHING, Bounds, Point, Range, VersionPoint, resolve

FIRST_EPOCH = 1
# The slices that a run plans at once, and registers, so that people see them: a backlog may have ten thousand.
SLICES_AHEAD = 100


def begins_with_snapshot(context: TableContext, epoch: int) -> bool:
    """Return whether the epoch begins with a snapshot; every epoch after the first does, regardless of `start`."""
    return epoch != FIRST_EPOCH or context.table.start is Start.SNAPSHOT


def beginning(
    context: TableContext, tip: SourceState, epoch: int, planned: int | None = None
) -> tuple[PlannedSlice | None, BaseState]:
    """Return the start slice by `start`, None from version 0 on, and the base of the first slice of changes.

    The start slice covers all versions that never land; its one part has the columns and no rows. `planned` is the last
    version of a start slice planned before: with `start: latest`, it keeps its end when the source has moved on. Raises
    start_refused, also if it was planned for another start, COLUMN_UNFIT, and what `check_source` raises.
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
        target_rows=context.table.files.target_rows,
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


_LATER = "give a later --to."


@dataclass(frozen=True)
class TablePlan:
    """A table's source and manifest, the pending slices in order, and the break after them, if any.

    It may have the first slices only; then `stop` is None. A snapshot that is loaded in chunks has one entry for each
    chunk that is left; commits after it are planned when it has landed. `position` is that of the first slice.
    """

    state: SourceState
    manifest: Manifest | None
    position: CommitPosition
    slices: tuple[PlannedSlice, ...]
    stop: Break | None

    @property
    def partitions(self) -> tuple[PlannedSlice, ...]:
        """Return the pending slices, a snapshot in chunks as one."""
        return self.slices[:1] if self.slices and self.slices[0].chunk else self.slices

    @property
    def rows(self) -> int:
        """Return the rows of all slices."""
        return sum(planned.rows for planned in self.slices)

    def later_rows(self, at_most: int) -> int:
        """Return an estimate of the rows after a plan of `at_most` slices: as many for each version as in these."""
        if len(self.slices) < at_most or self.slices[0].is_snapshot:
            return 0
        first, last = self.slices[0].first, self.slices[-1].last
        return self.rows * (self.state.version - last) // (last - first + 1)


Boundaries = Callable[[int, int], frozenset[int]]
"""Takes an epoch and its covered version; returns the last versions of the registered slices after it."""


def no_boundaries(_epoch: int, _covered: int) -> frozenset[int]:
    """Return no boundaries, for callers that register no slices."""
    return frozenset()


def recovered(context: TableContext, boundaries: Boundaries) -> tuple[VersionedManifest | None, frozenset[int]]:
    """Finish a publication that was interrupted; return the manifest and the boundaries to plan with.

    If nothing else is pending, no publication would finish it. Raises what recovery and the store raise.
    """
    current = drive(recover(context.name), context.store)
    if current is None:
        return None, boundaries(drive(first_epoch(context.name), context.store), -1)
    return current, boundaries(current.manifest.epoch, current.manifest.covered)


def plan_table(
    context: TableContext,
    boundaries: frozenset[int] = frozenset(),
    requested: Range = EVERYTHING,
    at_most: int | None = None,
) -> TablePlan:
    """Return the table's plan, a pure function of its log, its manifest and its settings.

    `boundaries` are the last versions of slices that are registered as partitions: the plan keeps them as boundaries.
    `requested` limits the plan to a range, and `at_most` the slices of changes to the first ones. Reads no covered
    commit. Raises RANGE_REFUSED, start_refused, and what the log, the manifest, and the check of settings against the
    source raise.
    """
    state, manifest = context.log.state(), context.manifest()
    bounds = None if requested.is_everything else resolve(context.log.uri, context.log.times(state), requested)
    if manifest is None:
        return _first_plan(context, state, boundaries, bounds, at_most)
    position = position_after(manifest)
    if manifest.loading is not None:
        context.log.require_landed(state, manifest.loading.key.last, manifest.source_table_id)
        return replace(plan_rest(context, manifest, manifest.loading), state=state)
    if bounds is not None and _is_over(context, bounds, manifest.covered, state):
        return TablePlan(state, manifest, position, (), None)
    check_columns(context.config, context.table, state, [column.name for column in manifest.columns])
    last = bounds.last if bounds else None
    plan = plan_changes(
        context, BaseState.landed(manifest), manifest.epoch, state, limits_of(context.table), boundaries, last, at_most
    )
    return TablePlan(state, manifest, position, plan.slices, plan.stop)


def plan_key(context: TableContext, key: SliceKey, base: BaseState | None, tip: SourceState) -> PlannedSlice:
    """Return the slice that a partition key names, after `base`; None: the first of a mirror without snapshot.

    `tip` is the source at its newest version, or at any version from the key's last on. Raises what a break in the
    key's range means (`stop_error`), and not_one_slice.
    """
    if base is None:
        start, base = beginning(context, tip, key.epoch, key.last)
        if start is not None:
            return start
    plan = plan_changes(context, base, key.epoch, tip, NO_LIMITS, frozenset(), key.last)
    if plan.stop is not None:
        raise stop_error(context.name, plan.stop)
    if len(plan.slices) != 1:
        raise not_one_slice(str(context.name), str(key), plan.slices[1].first if plan.slices else None)
    return plan.slices[0]


def plan_snapshot(context: TableContext, state: SourceState, epoch: int) -> TablePlan:
    """Return the plan of the snapshot of this version, which begins an epoch; in chunks if it is large."""
    check_source(context.config, context.table, state)
    chunks = () if is_small(state, limits_of(context.table)) else _chunks(context, state, epoch)
    planned = chunks if len(chunks) > 1 else (snapshot_slice(state, epoch, context.table.files.target_rows),)
    return TablePlan(state, None, next_position(None, epoch=epoch, incarnation=uuid.uuid4().hex), planned, None)


def plan_rest(context: TableContext, manifest: Manifest, loading: Loading) -> TablePlan:
    """Return the plan of the chunks that are left of the snapshot that is being loaded.

    Raises SNAPSHOT_LOST when its version can't be read any more, and SOURCE_BROKE when its table or columns are not
    those of the chunks that have landed.
    """
    try:
        state = context.log.state(loading.key.last)
    except LogGap as error:
        raise SNAPSHOT_LOST(table=str(context.name), loading=loading, why=error.what) from error
    why = ""
    if state.table_id != manifest.source_table_id:
        why = "it is another table now"
    elif manifest.commit_digest not in (None, state.digest):
        why = "its log was rolled back, so this is another version"
    elif (manifest.columns, manifest.where) != (
        recorded_columns(table_columns(context.table, state.schema)),
        condition_fingerprint(context.table),
    ):
        why = "its columns or `where` are not the landed ones"
    if why:
        raise SOURCE_BROKE(table=str(context.name), undo="", version=state.version, why=f"{why}, and {loading}")
    return TablePlan(state, manifest, position_after(manifest), _chunks(context, state, manifest.epoch, loading), None)


def position_after(manifest: Manifest) -> CommitPosition:
    """Return the position of the slice that follows what has landed."""
    return next_position(manifest, epoch=manifest.epoch, incarnation=manifest.incarnation)


def _first_plan(
    context: TableContext, tip: SourceState, boundaries: frozenset[int], bounds: Bounds | None, at_most: int | None
) -> TablePlan:
    """Return the plan of a table of which nothing has landed: a snapshot, or the changes from its start on."""
    epoch, last = drive(first_epoch(context.name), context.store), bounds.last if bounds else tip.version
    position = next_position(None, epoch=epoch, incarnation=uuid.uuid4().hex)
    if bounds is not None and bounds.is_empty:
        return TablePlan(tip, None, position, (), None)
    if begins_with_snapshot(context, epoch):
        state = tip if last == tip.version else context.log.state(last)
        changes = context.table.changes
        if is_recorded(changes, tip.metadata) and not is_recorded(changes, state.metadata):
            raise RANGE_REFUSED(
                uri=context.log.uri, why=f"{RECORD[changes]} was off at version {last}", next_step=_LATER
            )
        return plan_snapshot(context, state, epoch)
    start, base = beginning(context, tip, epoch)
    first = () if start is None else (start,)
    if bounds is not None and last < base.covered:
        raise RANGE_REFUSED(
            uri=context.log.uri, why=f"the mirror begins with version {base.covered + 1}", next_step=_LATER
        )
    if bounds is not None and _is_over(context, bounds, base.covered, tip):
        return TablePlan(tip, None, position, first, None)
    plan = plan_changes(context, base, epoch, tip, limits_of(context.table), boundaries, last, at_most)
    return TablePlan(tip, None, position, (*first, *plan.slices), plan.stop)


def _is_over(context: TableContext, bounds: Bounds, covered: int, tip: SourceState) -> bool:
    """Return whether nothing of the range is left. Raises RANGE_REFUSED when it would leave a gap after `covered`."""
    first = 0 if bounds.first is None else bounds.first
    if covered + 1 < first <= bounds.last:
        gap = f"--from {first} would leave out what has not landed, from version {covered + 1} on"
        raise RANGE_REFUSED(
            uri=context.log.uri, why=gap, next_step=f"give --from {covered + 1}, an earlier one, or none."
        )
    return bounds.is_empty or bounds.last <= covered <= tip.version


def _chunks(
    context: TableContext, state: SourceState, epoch: int, loading: Loading | None = None
) -> tuple[PlannedSlice, ...]:
    """Return the chunks of the table as of the state's version, after those that have landed."""
    landed = (loading.chunk.number, loading.chunk.end) if loading else (0, 0)
    chunks = chunk_files(context.log.reopened().live_file_columns(state.version), limits_of(context.table), *landed)
    return tuple(snapshot_slice(state, epoch, context.table.files.target_rows, chunk) for chunk in chunks)
