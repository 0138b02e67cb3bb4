"""What a table still has to do: its log against its manifest. No JVM."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from mirror_assets.config import Changes
from mirror_assets.landing.format import Loading, Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.changes import NO_LIMITS, limits_of, plan_changes
from mirror_assets.mirroring.columns import recorded_columns, table_columns
from mirror_assets.mirroring.errors import SliceUnfit, SnapshotLost, SourceBroke, stop_error
from mirror_assets.mirroring.source import check_columns, check_source
from mirror_assets.mirroring.start import Beginning, beginning, beginning_behind, begins_with_snapshot, start_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.batching import cut_files, is_small
from mirror_assets.source.errors import LogGap, RangeRefused
from mirror_assets.source.planner import Break, PlannedSlice, snapshot_slice
from mirror_assets.source.ranges import EVERYTHING, Bounds, Range, resolve
from mirror_assets.source.state import SourceState

_LATER = "give a later --to."


@dataclass(frozen=True)
class TablePlan:
    """A table's source and manifest, the pending slices in order, and the break behind them, if any.

    A snapshot that is loaded in chunks is there once for each chunk that is left; what comes after it is planned when
    it has landed.
    """

    state: SourceState
    manifest: Manifest | None
    footing: Footing
    slices: tuple[PlannedSlice, ...]
    stop: Break | None

    @property
    def partitions(self) -> tuple[PlannedSlice, ...]:
        """The pending slices, each once."""
        return self.slices[:1] if self.slices and self.slices[0].chunk else self.slices


def plan_table(work: TableWork, boundaries: frozenset[int] = frozenset(), asked: Range = EVERYTHING) -> TablePlan:
    """The plan of the table: a pure function of its log, its manifest and its settings.

    `boundaries` are last versions of slices that are registered already, so that their keys stay as they are; `asked`
    is the range to plan. Reads no commit that is covered. Raises RangeRefused, StartRefused, and what the log, the
    manifest, and the check of settings against the source raise.
    """
    state, manifest = work.log.state(), work.manifest()
    bounds = None if asked.is_everything else resolve(work.table.source, work.log.times(state), asked)
    if manifest is None:
        return _first_plan(work, state, boundaries, bounds)
    footing = after_manifest(manifest)
    if manifest.loading is not None:
        return TablePlan(state, manifest, footing, plan_rest(work, manifest), None)
    if bounds is not None and _is_over(work, bounds, manifest.covered, state):
        return TablePlan(state, manifest, footing, (), None)
    check_columns(work.config, work.table, state, [column.name for column in manifest.columns])
    last = bounds.last if bounds else None
    plan = plan_changes(work, Before.landed(manifest), manifest.life, state, limits_of(work.table), boundaries, last)
    return TablePlan(state, manifest, footing, plan.slices, plan.stop)


def plan_key(work: TableWork, key: SliceKey, before: Before | None, tip: SourceState) -> PlannedSlice:
    """The slice that a partition key names, without what is covered before it; None before: the first without snapshot.

    `tip` is the source at its newest version, or at one of late that the key does not reach beyond. Raises what a break
    in the key's range means (`stop_error`), and SliceUnfit when its schema changes within.
    """
    if before is None:
        begins = beginning(work, tip)
        if begins.version > 0:
            return start_slice(beginning_behind(work, key.last, tip), key.life)
        before = _before(work, begins)
    plan = plan_changes(work, before, key.life, tip, NO_LIMITS, frozenset(), key.last)
    if plan.stop is not None:
        raise stop_error(work.name, plan.stop)
    if len(plan.slices) != 1:
        raise SliceUnfit(str(work.name), str(key), plan.slices[1].first)
    return plan.slices[0]


def plan_snapshot(work: TableWork, life: int, version: int | None = None) -> tuple[tuple[PlannedSlice, ...], Footing]:
    """The snapshot slice that begins a life, in chunks if it is large, and its footing; at the source's tip if None."""
    return _snapshot(work, work.log.state(version), life)


def plan_rest(work: TableWork, manifest: Manifest) -> tuple[PlannedSlice, ...]:
    """The chunks that are left of the snapshot that is being loaded; none if it is whole.

    Raises SnapshotLost when its version can't be read any more, and SourceBroke when what landed of it would not fit.
    """
    loading = manifest.loading
    if loading is None:
        return ()
    try:
        state = work.log.state(loading.key.last)
    except LogGap as error:
        raise SnapshotLost(str(work.name), loading, error.what) from error
    if state.table_id != manifest.source_table_id:
        raise SourceBroke(str(work.name), state.version, f"it is another table now, and {loading}")
    if recorded_columns(table_columns(work.table, state.schema)) != manifest.columns:
        raise SourceBroke(str(work.name), state.version, f"its columns are not the landed ones, and {loading}")
    return _chunks(work, state, manifest.life, loading)


def after_manifest(manifest: Manifest) -> Footing:
    """The footing of the slice that follows what has landed."""
    return next_footing(manifest, life=manifest.life, incarnation=manifest.incarnation)


def _first_plan(work: TableWork, tip: SourceState, boundaries: frozenset[int], bounds: Bounds | None) -> TablePlan:
    """The plan of a table of which nothing has landed: a snapshot, or the changes from its start on."""
    life, last = drive(first_life(work.name), work.store), bounds.last if bounds else tip.version
    footing = next_footing(None, life=life, incarnation=uuid.uuid4().hex)
    if bounds is not None and bounds.is_empty:
        return TablePlan(tip, None, footing, (), None)
    if begins_with_snapshot(work, life):
        state = tip if last == tip.version else work.log.state(last)
        if work.table.changes is Changes.FEED and tip.feed_enabled and not state.feed_enabled:
            raise RangeRefused(work.table.source, f"the change data feed was off at version {last}", _LATER)
        planned, footing = _snapshot(work, state, life)
        return TablePlan(state, None, footing, planned, None)
    begins = beginning(work, tip)
    first = (start_slice(begins, life),) if begins.version else ()
    if bounds is not None and last < begins.version - 1:
        raise RangeRefused(work.table.source, f"the mirror begins with version {begins.version}", _LATER)
    if bounds is not None and _is_over(work, bounds, begins.version - 1, tip):
        return TablePlan(tip, None, footing, first, None)
    plan = plan_changes(work, _before(work, begins), life, tip, limits_of(work.table), boundaries, last)
    return TablePlan(tip, None, footing, (*first, *plan.slices), plan.stop)


def _is_over(work: TableWork, bounds: Bounds, covered: int, tip: SourceState) -> bool:
    """Whether nothing of the range is left. Raises RangeRefused when it would leave a gap behind what is covered."""
    first = 0 if bounds.first is None else bounds.first
    if covered + 1 < first <= bounds.last:
        gap = f"--from {first} would leave out what has not landed, from version {covered + 1} on"
        raise RangeRefused(work.table.source, gap, f"give --from {covered + 1}, an earlier one, or none.")
    return bounds.is_empty or bounds.last <= covered <= tip.version


def _before(work: TableWork, begins: Beginning) -> Before:
    """What the first slice of changes follows: nothing has landed, so its schema is that of its own first commit."""
    source = begins.source
    columns = frozenset(column.name for column in table_columns(work.table, source.schema))
    return Before(begins.version - 1, source.schema_string, source.table_id, columns, is_start=True)


def _snapshot(work: TableWork, state: SourceState, life: int) -> tuple[tuple[PlannedSlice, ...], Footing]:
    check_source(work.config, work.table, state)
    chunks = () if is_small(state, limits_of(work.table)) else _chunks(work, state, life)
    planned = chunks if len(chunks) > 1 else (snapshot_slice(state, life, work.table.files.target_rows),)
    return planned, next_footing(None, life=life, incarnation=uuid.uuid4().hex)


def _chunks(work: TableWork, state: SourceState, life: int, loading: Loading | None = None) -> tuple[PlannedSlice, ...]:
    """The chunks of the table as of the state's version, behind those that have landed."""
    landed = (loading.chunk.number, loading.chunk.end) if loading else (0, 0)
    chunks = cut_files(work.log.files(state.version), limits_of(work.table), *landed)
    return tuple(snapshot_slice(state, life, work.table.files.target_rows, chunk) for chunk in chunks)
