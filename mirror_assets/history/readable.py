"""From which version on the feed of a source can be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mirror_assets.source.commits import Commit
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import SourceLog
from mirror_assets.source.row_counts import feed_files
from mirror_assets.source.source_state import SourceState

_THREADS = 16


def readable_from(log: SourceLog, first: int, tip: SourceState) -> int:
    """The first version, of those from `first` on, behind which all commits can be read; the tip + 1 if there is none.

    They are in the log, the feed was on, and their files are there. Raises what the log raises.
    """
    known = _first_state(log, max(first, log.earliest()), tip)
    commits = log.commits(known.version, tip.version)
    begin = _switched_on(known, commits)
    with ThreadPoolExecutor(_THREADS) as pool:
        versions = range(begin, tip.version + 1)
        lost = pool.map(lambda version: log.lost_files(version, feed_files), versions)
        gone = [version for version, files in zip(versions, lost, strict=True) if files]
    return gone[-1] + 1 if gone else begin


def _first_state(log: SourceLog, first: int, tip: SourceState) -> SourceState:
    """The source at the first version that can be put together: a log that was cleaned up begins with a checkpoint."""
    for version in range(first, tip.version):
        try:
            return log.state(version)
        except LogGap:
            continue
    return tip


def _switched_on(known: SourceState, commits: tuple[Commit, ...]) -> int:
    """The version since which the feed has been on."""
    begin = known.version if known.feed_enabled else known.version + 1
    is_on = known.feed_enabled
    for commit in commits[1:]:
        if commit.metadata is not None:
            begin = begin if is_on and commit.metadata.feed_enabled else commit.version
            is_on = commit.metadata.feed_enabled
        begin = begin if is_on else commit.version + 1
    return begin
