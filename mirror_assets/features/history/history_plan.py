"""Plans which commits of a source its history appends next, from both Delta logs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from mirror_assets.errors import MirrorError
from mirror_assets.features.history.errors import HISTORY_AHEAD, HISTORY_FEED_OFF, HISTORY_GAP
from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext
from mirror_assets.source.actions import Actions, LoggedFile, Metadata
from mirror_assets.source.batching import batch_commits
from mirror_assets.source.commits import Commit, SourceState, feed_files
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.table_properties import how_to_enable

_NOT_IN_LOG = "they are not in the Delta log any more"
_THREADS = 16  # each asks the store which of a commit's files exist
# Commits that are in memory at a time, about 1 KB each.
_COMMITS = 10_000


@dataclass(frozen=True)
class HistorySlice:
    """Versions `first` to `last` of the source, all of one table id and schema, with the number of rows in the log.

    A snapshot has all rows of the one version as inserts, made at `snapshot_ms`, in place of its feed.
    """

    table_id: str
    schema_string: str
    first: int
    last: int
    rows: int
    snapshot_ms: int | None = None


@dataclass(frozen=True)
class HistoryPlan:
    """Slices to append, in order, up to the source's version `tip`, or up to the error `stop`.

    Of a large backlog, a plan has the first slices only, and is not `is_whole`: plan again after the last of them.
    """

    tip: int
    slices: tuple[HistorySlice, ...] = ()
    stop: MirrorError | None = None
    is_whole: bool = True


def plan_history(context: HistoryContext, newest: HistoryCommit | None, skip_to: int | None = None) -> HistoryPlan:
    """Plan what follows the history's newest commit, or what a new history has when there is none.

    A new history with `snapshot` that can't start at version 0 starts with a snapshot, so it is complete from then on.
    `skip_to` continues at that version and leaves out what is before it. Raises HISTORY_GAP and HISTORY_FEED_OFF when
    they come before any slice (else they are the plan's `stop`), HISTORY_AHEAD, and what the log raises.
    """
    tip = context.source.state()
    first = _first(context, tip, newest, skip_to)
    if first > tip.version:
        return HistoryPlan(tip.version)
    # A snapshot takes one commit, and a cut-off slice at most `max_commits`, so that at least one slice is whole.
    last = min(tip.version, first + max(_COMMITS, context.limits.max_commits + 2) - 1)
    steps, stop = _readable_steps(context, first, last)
    is_whole = stop is not None or last == tip.version
    slices = list[HistorySlice]()
    if steps and _needs_snapshot(context, newest, first):
        begun, at = steps.pop(0)
        rows, time_ms = context.source.state(begun.version).likely_rows, context.source.times(tip).at(begun.version)
        slices.append(HistorySlice(at.table_id, at.schema_string, begun.version, begun.version, rows, time_ms))
    cuts = frozenset(
        commit.version
        for (commit, at), (_, after) in pairwise(steps)
        if (at.table_id, at.schema_string) != (after.table_id, after.schema_string)
    )
    known = {commit.version: metadata for commit, metadata in steps}
    batches = tuple(batch_commits([commit for commit, _ in steps], context.limits, cuts))
    for commits in batches if is_whole else batches[:-1]:  # later commits may belong to the last one
        at = known[commits[-1].version]
        planned = HistorySlice(
            table_id=at.table_id,
            schema_string=at.schema_string,
            first=commits[0].version,
            last=commits[-1].version,
            rows=sum(commit.rows for commit in commits),
        )
        slices.append(planned)
    return HistoryPlan(tip.version, tuple(slices), stop, is_whole)


def plan_backlog(
    context: HistoryContext, newest: HistoryCommit | None, skip_to: int | None = None
) -> Iterator[HistoryPlan]:
    """Yield the plans of the whole backlog, as if each was appended before the next one is made; see `plan_history`."""
    while True:
        plan = plan_history(context, newest, skip_to)
        yield plan
        if plan.is_whole:
            return
        last = plan.slices[-1]
        newest = HistoryCommit(newest.generation + 1 if newest else 1, last.table_id, last.first, last.last, attempt="")


def lost_behind(context: HistoryContext, first: int, last: int, why: str) -> MirrorError:
    """Return the error for unreadable commits from `first` on, up to `last` when the log can't say which."""
    tip = context.source.state()
    readable = readable_from(context.source, first, tip)
    readable = readable if readable > first else last + 1
    if readable > tip.version and not tip.feed_enabled:
        return HISTORY_FEED_OFF(
            table=context.table, uri=context.source.uri, how=how_to_enable(context.source.uri, tip.protocol)
        )
    lost = f"version {first}" if readable == first + 1 else f"versions {first} to {readable - 1}"
    return HISTORY_GAP(table=context.table, lost=lost, why=why, next_version=readable)


def _first(context: HistoryContext, tip: SourceState, newest: HistoryCommit | None, skip_to: int | None) -> int:
    """Return the first version to append. Raises HISTORY_GAP and HISTORY_AHEAD."""
    if newest is not None and _is_same_log(context, tip, newest):
        return max(newest.last + 1, skip_to or 0)
    if skip_to is not None:
        return skip_to
    if newest is None and context.start is not None:
        start = context.source.times(tip).first_from(context.start)
        return tip.version + 1 if start is None else start
    begin = readable_from(context.source, 0, tip)
    if begin > tip.version:
        raise lost_behind(context, 0, tip.version, "their files were deleted")
    if newest is not None and begin > 0:
        between = f"what came after version {newest.last} of the table with the id {newest.table_id}"
        why = f"the source is the table with the id {tip.table_id} now, readable from version {begin} on"
        raise HISTORY_GAP(table=context.table, lost=between, why=why, next_version=begin)
    return _snapshot_from(context.source, begin, tip) if _needs_snapshot(context, newest, begin) else begin


def _needs_snapshot(context: HistoryContext, newest: HistoryCommit | None, first: int) -> bool:
    return newest is None and first > 0 and context.snapshot and context.start is None


def _is_same_log(context: HistoryContext, tip: SourceState, newest: HistoryCommit) -> bool:
    """Return whether the source's log continues the history. Raises HISTORY_AHEAD when the log ends before the history.

    CREATE OR REPLACE changes the table id within one log; DROP and CREATE starts another log.
    """
    if newest.last < 0:  # the history's log has lost what it covers
        return False
    if tip.version < newest.last:
        if tip.table_id == newest.table_id:
            raise HISTORY_AHEAD(table=context.table, path=context.history.uri, tip=tip.version, covered=newest.last)
        return False
    try:
        return tip.table_id == newest.table_id or context.source.state(newest.last).table_id == newest.table_id
    except LogGap:
        return False


def _readable_steps(
    context: HistoryContext, first: int, last: int
) -> tuple[list[tuple[Commit, Metadata]], MirrorError | None]:
    """Return the readable commits [first, last] with their metadata, and the error that prevents the others."""
    source, missing = context.source, None
    try:
        commits: Sequence[Commit] = source.commits(first, last)
    except LogGap as gap:
        missing = gap.version
        commits = source.commits(first, missing - 1) if missing > first else ()
    try:
        known = source.state(first).metadata
    except LogGap:
        return [], lost_behind(context, first, first, _NOT_IN_LOG)
    steps = list[tuple[Commit, Metadata]]()
    for commit in commits:
        known = commit.metadata or known
        if not known.feed_enabled:
            return steps, lost_behind(context, commit.version, commit.version, "the change data feed was off")
        steps.append((commit, known))
    return steps, None if missing is None else lost_behind(context, missing, missing, _NOT_IN_LOG)


def readable_from(log: DeltaLog, first: int, tip: SourceState) -> int:
    """Return the first version >= `first` from which on every commit can be read, or the tip + 1.

    Readable: the commit is in the log, the feed was on, and its files exist. Raises what the log raises.
    """
    known = _first_state(log, max(first, log.earliest()), tip)
    later = range(known.version + 1, tip.version + 1)
    commits = (commit for part in _parts(later) for commit in log.commits(part[0], part[-1]))
    begin = _switched_on(known, commits)
    lost = _last_lost(log, range(begin, tip.version + 1), feed_files)
    return begin if lost is None else lost + 1


def _snapshot_from(log: DeltaLog, begin: int, tip: SourceState) -> int:
    """Return the first version >= `begin` of which no file was removed later and deleted since."""
    lost = _last_lost(log, range(begin + 1, tip.version + 1), lambda actions: actions.removed)
    return begin if lost is None else lost


def _last_lost(log: DeltaLog, versions: range, needed: Callable[[Actions], Iterable[LoggedFile]]) -> int | None:
    """Return the last of these commits of which a needed file was deleted."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for part in _parts(versions[::-1]):
            lost = pool.map(lambda version: log.lost_files(version, needed), part)
            found = [version for version, files in zip(part, lost, strict=True) if files]
            if found:
                return found[0]
    return None


def _parts(versions: range) -> Iterator[range]:
    """Yield the versions in ranges that need little memory."""
    return (versions[first : first + _COMMITS] for first in range(0, len(versions), _COMMITS))


def _first_state(log: DeltaLog, first: int, tip: SourceState) -> SourceState:
    """Return the first state that can be reconstructed: after log cleanup that is the first checkpoint's."""
    for version in range(first, tip.version):
        try:
            return log.state(version)
        except LogGap:
            continue
    return tip


def _switched_on(known: SourceState, commits: Iterable[Commit]) -> int:
    """Return the version since which the feed has been on without a break; `commits` are those after `known`."""
    begin = known.version if known.feed_enabled else known.version + 1
    is_on = known.feed_enabled
    for commit in commits:
        if commit.metadata is not None:
            begin = begin if is_on and commit.metadata.feed_enabled else commit.version
            is_on = commit.metadata.feed_enabled
        begin = begin if is_on else commit.version + 1
    return begin
