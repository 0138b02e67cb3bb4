"""What the log said of a file when it came, for a remove action needn't say it again (delta-rs leaves out its rows)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirror_assets.delta.errors import LogGap
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit, Tombstone


def files_by_path(log: TableLog, commits: Sequence[LoggedCommit], removed: Iterable[Tombstone]) -> dict[str, LiveFile]:
    """The files that consecutive commits add; and those before them, if one of the removed ones was among these.

    A file that was there before is missing when the version before the commits can't be put together any more.
    """
    added = {file.path: file for commit in commits for file in commit.added}
    if all(tomb.path in added for tomb in removed):
        return added
    try:
        return {file.path: file for file in log.snapshot(commits[0].version - 1).files} | added
    except LogGap:
        return added
