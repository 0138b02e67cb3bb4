"""What a table still has to do: its log against its manifest. No JVM."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from mirror_assets.config import Changes, OnDropColumn
from mirror_assets.delta.chunks import cut_files, is_small
from mirror_assets.delta.commits import Commit
from mirror_assets.delta.errors import LogGap
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.plan import (
    Break,
    BreakKind,
    Limits,
    Plan,
    PlannedSlice,
    PlanRequest,
    plan_slices,
    snapshot_slice,
)
from mirror_assets.delta.state import SourceState
from mirror_assets.landing.format import Loading, Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.chosen import chosen_columns
from mirror_assets.mirroring.columns import recorded_columns, table_columns
from mirror_assets.mirroring.errors import SliceUnfit, SnapshotLost, SourceBroke, stop_error
from mirror_assets.mirroring.source import check_columns, check_source
from mirror_assets.mirroring.work import TableWork

# The range of a slice that is asked for by its key is given: no limit may cut it again.
_NO_LIMITS = Limits(max_commits=2**62, max_rows=2**62, max_bytes=2**62)


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


def plan_table(work: TableWork, boundaries: frozenset[int] = frozenset()) -> TablePlan:
    """The plan of the table: a pure function of its log, its manifest and its settings.

    `boundaries` are last versions of slices that are registered already, so that their keys stay as they are. Reads no
    commit that is covered. Raises what the log, the manifest, and the check of settings against the source raise.
    """
    state, manifest = work.log.state(), work.manifest()
    if manifest is None:
        planned, footing = _snapshot(work, state, drive(first_life(work.name), work.store))
        return TablePlan(state, None, footing, planned, None)
    if manifest.loading is not None:
        return TablePlan(state, manifest, after_manifest(manifest), plan_rest(work, manifest), None)
    before = Before.landed(manifest)
    check_columns(work.config, work.table, state, [column.name for column in manifest.columns])
    plan = _changes(work, before, manifest.life, state, _limits(work), boundaries)
    return TablePlan(state, manifest, after_manifest(manifest), plan.slices, plan.stop)


def plan_key(work: TableWork, key: SliceKey, before: Before) -> PlannedSlice:
    """The slice that a partition key names, without what is covered before it.

    Raises what a break in the key's range means (`stop_error`), and SliceUnfit when its schema changes within.
    """
    plan = _changes(work, before, key.life, work.log.state(), _NO_LIMITS, frozenset(), key.last)
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


def _snapshot(work: TableWork, state: SourceState, life: int) -> tuple[tuple[PlannedSlice, ...], Footing]:
    check_source(work.config, work.table, state)
    chunks = () if is_small(state, _limits(work)) else _chunks(work, state, life)
    planned = chunks if len(chunks) > 1 else (snapshot_slice(state, life, work.table.files.target_rows),)
    return planned, next_footing(None, life=life, incarnation=uuid.uuid4().hex)


def _chunks(work: TableWork, state: SourceState, life: int, loading: Loading | None = None) -> tuple[PlannedSlice, ...]:
    """The chunks of the table as of the state's version, behind those that have landed."""
    landed = (loading.chunk.number, loading.chunk.end) if loading else (0, 0)
    chunks = cut_files(work.log.files(state.version), _limits(work), *landed)
    return tuple(snapshot_slice(state, life, work.table.files.target_rows, chunk) for chunk in chunks)


def _limits(work: TableWork) -> Limits:
    limits = work.table.slices
    return Limits(limits.max_commits, limits.max_rows, limits.max_bytes)


def _changes(
    work: TableWork,
    before: Before,
    life: int,
    tip: SourceState,
    limits: Limits,
    boundaries: frozenset[int],
    last: int | None = None,
) -> Plan:
    """Slices of the commits after `before`, up to `last` or the tip."""
    chosen = chosen_columns(work.table, before)
    if chosen.stop is not None:
        return Plan((), chosen.stop)
    end = tip.version if last is None else min(last, tip.version)
    tracked = work.table.changes is Changes.ROW_TRACKING
    if tracked and (stop := _untracked(work.log, before)):
        return Plan((), stop)
    return plan_slices(
        PlanRequest(
            covered=before.covered,
            life=life,
            tip=end,
            tip_table_id=tip.table_id,
            commits=_commits(work, before.covered + 1, end),
            schema_string=before.schema_string,
            table_id=before.table_id,
            keys=work.table.mirror_keys,
            columns=work.table.columns,
            dropped=chosen.dropped,
            keep_dropped=work.table.on_drop_column is OnDropColumn.KEEP,
            feed=work.table.changes is Changes.FEED,
            row_tracking=tracked,
            append_only=work.table.changes is Changes.APPEND_ONLY,
            net=work.table.is_net,
            limits=limits,
            target_rows=work.table.files.target_rows,
            boundaries=boundaries,
            covered_table_id=_id_at(work.log, before) if tip.table_id != before.table_id else before.table_id,
        )
    )


def _commits(work: TableWork, first: int, last: int) -> tuple[Commit, ...]:
    """The commits; by row tracking, rows that were only rewritten don't land."""
    commits = work.log.commits(first, last)
    if work.table.changes is not Changes.ROW_TRACKING:
        return commits
    return tuple(replace(commit, rows=commit.changed_rows) for commit in commits)


def _untracked(log: SourceLog, before: Before) -> Break | None:
    """The break where rows had no ids yet at the covered version. Raises LogGap when that can't be read any more."""
    if log.state(before.covered).metadata.row_tracking:
        return None
    message = f"row tracking was off at version {before.covered}, which has landed"
    return Break(before.covered, BreakKind.ROW_TRACKING_DISABLED, message)


def _id_at(log: SourceLog, before: Before) -> str | None:
    """The table id at the covered version, or None when the log can't say any more."""
    try:
        return log.state(before.covered).table_id
    except LogGap:
        return None
