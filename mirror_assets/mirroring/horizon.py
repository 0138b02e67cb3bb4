"""How long the next commit to cover can still be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mirror_assets.audit.retention import Horizon, Then
from mirror_assets.config import Changes, OnBreak
from mirror_assets.delta.actions import CommitFile, FileAction
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.retention import retention_clocks
from mirror_assets.delta.rows import feed_files
from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.mirroring.work import TableWork

_LOOKED_FOR = 8


def some_lost(log: SourceLog, version: int, needed: Callable[[CommitFile], Sequence[FileAction]]) -> tuple[str, ...]:
    """Needed files of the commit that are gone, of a few of them.

    Those of one commit are as old as each other: VACUUM removes them together.
    """
    return log.lost_files(version, lambda commit: needed(commit)[:_LOOKED_FOR])


def feed_horizon(work: TableWork, uncovered: Uncovered, now: float) -> Horizon:
    """The horizon at `now` (seconds since 1970), from the log and the presence of files. Raises PropertyUnreadable.

    A table of which nothing has landed begins with a snapshot: it waits for no commit in particular.
    """
    waits, times = uncovered.waits and uncovered.manifest is not None, uncovered.times
    is_there = waits and uncovered.next >= times.first
    return Horizon(
        uri=work.table.source,
        version=uncovered.next if waits else uncovered.tip.version + 1,
        waits=waits,
        lost=_lost(work, uncovered.next) if is_there else (),
        committed=times.at(uncovered.next) / 1000 if is_there else None,
        clocks=retention_clocks(work.table.source, uncovered.tip.metadata),
        now=now,
        then=Then.REBUILT if work.table.on_break is OnBreak.REBUILD else Then.HELD,
    )


def _lost(work: TableWork, version: int) -> tuple[str, ...]:
    """Files that the commit's changes are read from, whatever later commits do, and that are gone."""
    return some_lost(work.log, version, _NEEDED[work.table.changes])


def _removed(commit: CommitFile) -> tuple[FileAction, ...]:
    return commit.removed


def _added(commit: CommitFile) -> tuple[FileAction, ...]:
    return commit.added


_NEEDED = {Changes.FEED: feed_files, Changes.ROW_TRACKING: _removed, Changes.APPEND_ONLY: _added}
