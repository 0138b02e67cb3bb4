"""What a table still has to do: its log against its manifest. No JVM."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from mirror_assets.delta.errors import LogGap, RangeRefused
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.plan import Break, Limits, Plan, PlannedSlice, PlanRequest, plan_slices, snapshot_slice
from mirror_assets.delta.ranges import EVERYTHING, Bounds, Range, resolve
from mirror_assets.delta.state import SourceState
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.state import Footing, next_footing
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import SliceUnfit, SourceBroke
from mirror_assets.mirroring.source import check_source
from mirror_assets.mirroring.start import Beginning, beginning, beginning_behind, begins_with_snapshot, start_slice
from mirror_assets.mirroring.work import TableWork

# The range of a slice that is asked for by its key is given: no limit may cut it again.
_NO_LIMITS = Limits(max_commits=2**62, max_rows=2**62, max_bytes=2**62)
_LATER = "give a later --to."


@dataclass(frozen=True)
class TablePlan:
    """A table's source and manifest, the pending slices in order, and the break behind them, if any."""

    state: SourceState
    manifest: Manifest | None
    footing: Footing
    slices: tuple[PlannedSlice, ...]
    stop: Break | None


@dataclass(frozen=True)
class Before:
    """What a slice of changes follows: the version covered, and the source's schema and id there."""

    covered: int
    schema_string: str
    table_id: str


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
    if bounds is not None and _is_over(work, bounds, manifest.covered, state):
        return TablePlan(state, manifest, footing, (), None)
    before = Before(manifest.covered, manifest.source_schema, manifest.source_table_id)
    plan = _changes(work, before, manifest.life, state, _limits(work), boundaries, bounds.last if bounds else None)
    return TablePlan(state, manifest, footing, plan.slices, plan.stop)


def plan_key(work: TableWork, key: SliceKey, before: Before | None) -> PlannedSlice:
    """The slice that a partition key names, without what is covered before it; None before means nothing is.

    Raises SourceBroke when a break lies in the key's range, SliceUnfit when its schema changes within.
    """
    if before is None and begins_with_snapshot(work, key.life):
        return _snapshot(work, work.log.state(key.last), key.life)[0]
    if before is None:
        tip = work.log.state()
        begins = beginning(work, tip)
        if begins.version > 0:
            return start_slice(beginning_behind(work, key.last, tip), key.life)
        before = _before(begins)
    plan = _changes(work, before, key.life, work.log.state(), _NO_LIMITS, frozenset(), key.last)
    if plan.stop is not None:
        raise SourceBroke(str(work.name), plan.stop.version, plan.stop.message)
    if len(plan.slices) != 1:
        raise SliceUnfit(str(work.name), str(key), plan.slices[1].first)
    return plan.slices[0]


def plan_snapshot(work: TableWork, life: int) -> tuple[PlannedSlice, Footing]:
    """The snapshot slice that begins a life, at the source's tip, and its footing."""
    return _snapshot(work, work.log.state(), life)


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
        if tip.feed_enabled and not state.feed_enabled:
            raise RangeRefused(work.table.source, f"the change data feed was off at version {last}", _LATER)
        planned, footing = _snapshot(work, state, life)
        return TablePlan(state, None, footing, (planned,), None)
    begins = beginning(work, tip)
    first = (start_slice(begins, life),) if begins.version else ()
    if bounds is not None and last < begins.version - 1:
        raise RangeRefused(work.table.source, f"the mirror begins with version {begins.version}", _LATER)
    if bounds is not None and _is_over(work, bounds, begins.version - 1, tip):
        return TablePlan(tip, None, footing, first, None)
    plan = _changes(work, _before(begins), life, tip, _limits(work), boundaries, last)
    return TablePlan(tip, None, footing, (*first, *plan.slices), plan.stop)


def _is_over(work: TableWork, bounds: Bounds, covered: int, tip: SourceState) -> bool:
    """Whether nothing of the range is left. Raises RangeRefused when it would leave a gap behind what is covered."""
    first = 0 if bounds.first is None else bounds.first
    if covered + 1 < first <= bounds.last:
        gap = f"--from {first} would leave out what has not landed, from version {covered + 1} on"
        raise RangeRefused(work.table.source, gap, f"give --from {covered + 1}, an earlier one, or none.")
    return bounds.is_empty or bounds.last <= covered <= tip.version


def _before(begins: Beginning) -> Before:
    """What the first slice of changes follows: nothing has landed, so its schema is that of its own first commit."""
    return Before(begins.version - 1, begins.source.schema_string, begins.source.table_id)


def _limits(work: TableWork) -> Limits:
    limits = work.table.slices
    return Limits(limits.max_commits, limits.max_rows, limits.max_bytes)


def _snapshot(work: TableWork, state: SourceState, life: int) -> tuple[PlannedSlice, Footing]:
    check_source(work.config, work.table, state)
    planned = snapshot_slice(state, life, work.table.files.target_rows)
    return planned, next_footing(None, life=life, incarnation=uuid.uuid4().hex)


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
    end = tip.version if last is None else min(last, tip.version)
    return plan_slices(
        PlanRequest(
            covered=before.covered,
            life=life,
            tip=end,
            tip_table_id=tip.table_id,
            commits=work.log.commits(before.covered + 1, end),
            schema_string=before.schema_string,
            table_id=before.table_id,
            keys=tuple(work.table.keys),
            limits=limits,
            target_rows=work.table.files.target_rows,
            boundaries=boundaries,
            covered_table_id=_id_at(work.log, before) if tip.table_id != before.table_id else before.table_id,
        )
    )


def _id_at(log: SourceLog, before: Before) -> str | None:
    """The table id at the covered version, or None when the log can't say any more."""
    try:
        return log.state(before.covered).table_id
    except LogGap:
        return None
