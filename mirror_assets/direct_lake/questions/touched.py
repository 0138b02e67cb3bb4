"""Which partitions commits touch: the fewer, the less Direct Lake reloads (seed: table partitioning, ETL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from mirror_assets.direct_lake.questions.answer import Answer, Figure
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.table_log import LoggedCommit, TableLog, files_by_path

Partition = tuple[tuple[str, str | None], ...]
"""A partition's values by the names of columns, in order of the names: writers have them in any order."""


@dataclass(frozen=True)
class Touched:
    """The partitions in which a commit adds or removes files; `unknown` are removed files whose partition is lost."""

    version: int
    timestamp_ms: int
    operation: str
    partitions: tuple[Partition, ...]
    unknown: int

    def answer(self, live: Set[Partition]) -> Answer:
        """The row of the report, for a table that has these partitions now."""
        gone = len(set(self.partitions) - live)
        found = f"{self.operation} touches {len(self.partitions) - gone} of {len(live)} partitions"
        figures: dict[str, Figure] = {"touched": len(self.partitions), "operation": self.operation}
        if gone:
            found += f", and {gone} that {'is' if gone == 1 else 'are'} gone now"
        if self.unknown:
            found += f", and {self.unknown} files whose partition the log tells no more"
        return Answer("partitions touched", f"version {self.version}", found, figures=figures)


def partitions_touched(log: TableLog, commits: Sequence[LoggedCommit]) -> tuple[Touched, ...]:
    """What each of consecutive commits touches; a table without partitions has one."""
    known = files_by_path(log, commits, (tomb for commit in commits for tomb in commit.removed))
    return tuple(_touched(commit, known) for commit in commits)


def partition_of(values: Mapping[str, str | None]) -> Partition:
    """The partition with these values."""
    return tuple(sorted(values.items()))


def _touched(commit: LoggedCommit, known: Mapping[str, LiveFile]) -> Touched:
    removed = [known.get(tomb.path) for tomb in commit.removed]
    files = [*commit.added, *(file for file in removed if file is not None)]
    partitions = {partition_of(file.partition): None for file in files}
    return Touched(
        version=commit.version,
        timestamp_ms=commit.timestamp_ms,
        operation=commit.operation,
        partitions=tuple(partitions),
        unknown=sum(file is None for file in removed),
    )
