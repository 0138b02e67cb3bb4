"""How long the next commit to cover can still be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mirror_assets.audit.retention import Horizon, Then
from mirror_assets.config import Changes, OnBreak
from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.actions import Actions, LoggedFile
from mirror_assets.source.log import SourceLog
from mirror_assets.source.ranges import CommitTimes
from mirror_assets.source.retention import Retention
from mirror_assets.source.row_counts import feed_files
from mirror_assets.source.state import SourceState

# The files of one commit are as old as each other, so VACUUM removes them together: a few of them tell.
_LOOKED_FOR = 8

Needed = Callable[[Actions], Sequence[LoggedFile]]
"""The files that a commit's changes are read from, whatever later commits do."""


def feed_horizon(work: TableWork, uncovered: Uncovered, now: float) -> Horizon:
    """The horizon at `now` (seconds since 1970), from the log and the presence of files. Raises PropertyUnreadable.

    A table that begins with a snapshot waits for no commit in particular before that.
    """
    needed = _NEEDED[work.table.changes]
    return horizon_at(
        work.log, uncovered.tip, uncovered.times, uncovered.next_read, needed, _then(work, uncovered), now
    )


def _then(work: TableWork, uncovered: Uncovered) -> Then:
    if uncovered.start is not None:
        return Then.REFUSED
    return Then.REBUILT if work.table.on_break is OnBreak.REBUILD else Then.HELD


def horizon_at(
    log: SourceLog,
    tip: SourceState,
    times: CommitTimes,
    next_read: int | None,
    needed: Needed,
    then: Then,
    now: float,
) -> Horizon:
    """The horizon at `now` of whoever reads that version next; None: it has not begun, and no commit waits."""
    waits = next_read is not None and next_read <= tip.version
    version = next_read if next_read is not None and waits else tip.version + 1
    is_there = waits and version >= times.first
    return Horizon(
        version=version,
        waits=waits,
        committed=times.at(version) / 1000 if is_there else None,
        retention=Retention.of(log.uri, tip.metadata),
        now=now,
        then=then,
        lost=log.lost_files(version, lambda commit: needed(commit)[:_LOOKED_FOR]) if is_there else (),
    )


def _removed(commit: Actions) -> tuple[LoggedFile, ...]:
    return commit.data_removed


def _added(commit: Actions) -> tuple[LoggedFile, ...]:
    return commit.data_added


_NEEDED = {Changes.FEED: feed_files, Changes.ROW_TRACKING: _removed, Changes.APPEND_ONLY: _added}
