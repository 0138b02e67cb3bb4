"""Plans the slices of changes that follow what has landed: a table's settings and log, as the plan wants them."""

from __future__ import annotations

from dataclasses import replace

from mirror_assets.config import Changes, OnDropColumn, TableSettings
from mirror_assets.mirroring.before import Before
from mirror_assets.mirroring.chosen import chosen_columns
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.commits import Commit
from mirror_assets.source.errors import LogGap, SourceUnavailable
from mirror_assets.source.log import SourceLog
from mirror_assets.source.planner import Break, BreakKind, Limits, Plan, PlanRequest, plan_slices
from mirror_assets.source.state import SourceState

# The range of a slice that is asked for by its key is given: no limit may cut it again.
NO_LIMITS = Limits(max_commits=2**62, max_rows=2**62, max_bytes=2**62)


def limits_of(table: TableSettings) -> Limits:
    """What a slice of the table may hold."""
    limits = table.slices
    return Limits(limits.max_commits, limits.max_rows, limits.max_bytes)


def plan_changes(
    work: TableWork,
    before: Before,
    life: int,
    tip: SourceState,
    limits: Limits,
    boundaries: frozenset[int],
    last: int | None = None,
) -> Plan:
    """Slices of the commits after `before`, up to `last` or the tip, and the break behind them, if any.

    Raises what the log raises, LogGap when row tracking needs a version that can't be read any more, and
    SourceUnavailable where the log lists less than it holds.
    """
    chosen = chosen_columns(work.table, before)
    if chosen.stop is not None:
        return Plan((), chosen.stop)
    if tip.version < before.covered and tip.table_id == before.table_id and work.log.has_commit(before.covered):
        why = f"it says that version {tip.version} is the newest, and commit {before.covered} is in the log"
        raise SourceUnavailable(work.table.source, why)
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
    """The commits; by row tracking, rows that were only rewritten don't land, but where their key is a new id."""
    commits = work.log.commits(first, last)
    if work.table.changes is not Changes.ROW_TRACKING:
        return commits
    return tuple(_tracked(commit, keyless=work.table.is_keyless) for commit in commits)


def _tracked(commit: Commit, *, keyless: bool) -> Commit:
    if keyless and commit.renumbered:
        return replace(commit, rows=commit.changed_rows + commit.renumbered_rows, changes_data=True)
    return replace(commit, rows=commit.changed_rows)


def _untracked(log: SourceLog, before: Before) -> Break | None:
    """The break where rows had no ids yet at the covered version. Raises LogGap when that can't be read any more."""
    if before.is_planned or log.state(before.covered).metadata.row_tracking:
        return None
    message = f"row tracking was off at version {before.covered}, which has landed"
    return Break(before.covered, BreakKind.ROW_TRACKING_DISABLED, message)


def _id_at(log: SourceLog, before: Before) -> str | None:
    """The table id that the log has for what landed, or None when it can't say any more."""
    try:
        return log.state(before.witness).table_id
    except LogGap:
        return None
