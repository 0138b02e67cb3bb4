"""How long the next commit to cover can still be read."""

from __future__ import annotations

from mirror_assets.audit.retention import Horizon
from mirror_assets.config import Changes, OnBreak
from mirror_assets.delta.actions import CommitFile, FileAction
from mirror_assets.delta.retention import retention_clocks
from mirror_assets.mirroring.uncovered import Uncovered
from mirror_assets.mirroring.work import TableWork

_LOOKED_FOR = 8


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
        rebuilds=work.table.on_break is OnBreak.REBUILD,
    )


def _lost(work: TableWork, version: int) -> tuple[str, ...]:
    """Files that the commit's changes are read from, whatever later commits do, and that are gone.

    A few are looked for: the files of one commit are as old as each other, so VACUUM removes them together.
    """
    needed = _NEEDED[work.table.changes]
    return work.log.lost_files(version, lambda commit: needed(commit)[:_LOOKED_FOR])


def _of_feed(commit: CommitFile) -> tuple[FileAction, ...]:
    return commit.change_files or (*commit.added, *commit.removed)


def _removed(commit: CommitFile) -> tuple[FileAction, ...]:
    return commit.removed


def _added(commit: CommitFile) -> tuple[FileAction, ...]:
    return commit.added


_NEEDED = {Changes.FEED: _of_feed, Changes.ROW_TRACKING: _removed, Changes.APPEND_ONLY: _added}
