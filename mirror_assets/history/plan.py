"""Which commits of a source the history keeps next, and what is in the way: its log against the history's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mirror_assets.delta.commits import Commit, vector_versions
from mirror_assets.delta.cut import cut_commits
from mirror_assets.delta.errors import LogGap
from mirror_assets.delta.state import SourceState
from mirror_assets.history.errors import HistoryAhead, HistoryFeedOff, HistoryGap
from mirror_assets.history.readable import readable_from
from mirror_assets.history.record import Kept
from mirror_assets.history.work import HistoryContext

_NOT_IN_LOG = "they are not in the Delta log any more"
_OFF = "the change data feed was off"


@dataclass(frozen=True)
class HistorySlice:
    """Commits `first` to `last` of the table `table_id`, all of one schema; `rows` is what the log expects of them."""

    table_id: str
    schema_string: str
    first: int
    last: int
    rows: int
    vector_versions: tuple[int, ...]


@dataclass(frozen=True)
class HistoryPlan:
    """Slices to keep, in order, up to the source's `tip` or to what is in the way, `stop`."""

    tip: int
    slices: tuple[HistorySlice, ...] = ()
    stop: HistoryGap | HistoryFeedOff | None = None


@dataclass(frozen=True)
class _Stretch:
    """A commit, and the table's id and schema with it."""

    commit: Commit
    table_id: str
    schema_string: str


def plan_history(context: HistoryContext, newest: Kept | None, skip_to: int | None = None) -> HistoryPlan:
    """What follows the newest slice; what there is of the feed where nothing is kept yet.

    `skip_to` goes on there, whatever lies between. Raises HistoryGap and HistoryFeedOff where nothing can be kept
    before, HistoryAhead, and what the log raises.
    """
    tip = context.source.state()
    first = _first(context, tip, newest, skip_to)
    if first > tip.version:
        return HistoryPlan(tip.version)
    stretches, stop = _walk(context, tip, first)
    cuts = frozenset(
        before.commit.version
        for before, after in pairwise(stretches)
        if (before.table_id, before.schema_string) != (after.table_id, after.schema_string)
    )
    groups = cut_commits((stretch.commit for stretch in stretches), context.limits, cuts)
    return HistoryPlan(tip.version, tuple(_slices(groups, stretches)), stop)


def lost_behind(context: HistoryContext, first: int, last: int, why: str) -> HistoryGap | HistoryFeedOff:
    """The error for commits from `first` on that can't be read any more; up to `last`, where nothing tells which."""
    tip = context.source.state()
    found = readable_from(context.source, first, tip)
    readable = found if found > first else last + 1
    if readable > tip.version and not tip.feed_enabled:
        return HistoryFeedOff(context.table, context.source.uri, tip.protocol)
    lost = f"version {first}" if readable == first + 1 else f"versions {first} to {readable - 1}"
    return HistoryGap(context.table, lost, why, readable)


def _first(context: HistoryContext, tip: SourceState, newest: Kept | None, skip_to: int | None) -> int:
    """The next version to keep."""
    if newest is not None and _is_same_log(context, tip, newest):
        return max(newest.last + 1, skip_to or 0)
    if skip_to is not None:
        return skip_to
    begin = readable_from(context.source, 0, tip)
    if begin > tip.version:
        raise lost_behind(context, 0, tip.version, "their files are gone")
    if newest is not None and begin > 0:
        between = f"what came after version {newest.last} of the table with the id {newest.table_id}"
        why = f"the source is the table with the id {tip.table_id} now, readable from version {begin} on"
        raise HistoryGap(context.table, between, why, begin)
    return begin


def _is_same_log(context: HistoryContext, tip: SourceState, newest: Kept) -> bool:
    """Whether the source's log goes on behind the newest slice. Raises HistoryAhead when it ends before.

    A table that is replaced goes on in its log, under another id; one that was dropped and made anew does not. Of a
    slice that the history has lost nothing is known.
    """
    if newest.last < 0:
        return False
    if tip.version < newest.last:
        if tip.table_id == newest.table_id:
            raise HistoryAhead(context.table, context.history.uri, tip.version, newest.last)
        return False
    try:
        return tip.table_id == newest.table_id or context.source.state(newest.last).table_id == newest.table_id
    except LogGap:
        return False


def _walk(
    context: HistoryContext, tip: SourceState, first: int
) -> tuple[list[_Stretch], HistoryGap | HistoryFeedOff | None]:
    """The commits from `first` on that can be read, and what is behind them when that is not the tip."""
    commits, missing = _commits(context, first, tip.version)
    try:
        known = context.source.state(first).metadata
    except LogGap:
        return [], lost_behind(context, first, first, _NOT_IN_LOG)
    stretches: list[_Stretch] = []
    for commit in commits:
        known = commit.metadata or known
        if not known.feed_enabled:
            return stretches, lost_behind(context, commit.version, commit.version, _OFF)
        stretches.append(_Stretch(commit, known.table_id, known.schema_string))
    if missing is not None:
        return stretches, lost_behind(context, missing, missing, _NOT_IN_LOG)
    return stretches, None


def _commits(context: HistoryContext, first: int, last: int) -> tuple[Sequence[Commit], int | None]:
    """The commits up to the first that is missing from the log, and that one's version."""
    try:
        return context.source.commits(first, last), None
    except LogGap as gap:
        before = context.source.commits(first, gap.version - 1) if gap.version > first else ()
        return before, gap.version


def _slices(groups: Sequence[Sequence[Commit]], stretches: Sequence[_Stretch]) -> Iterator[HistorySlice]:
    by_version = {stretch.commit.version: stretch for stretch in stretches}
    for commits in groups:
        last = by_version[commits[-1].version]
        yield HistorySlice(
            table_id=last.table_id,
            schema_string=last.schema_string,
            first=commits[0].version,
            last=commits[-1].version,
            rows=sum(commit.rows for commit in commits),
            vector_versions=vector_versions(commits),
        )
