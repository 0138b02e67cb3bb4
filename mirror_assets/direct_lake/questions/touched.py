"""Which partitions commits touch: the fewer, the less Direct Lake reloads (seed: table partitioning, ETL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.questions.answer import Answer, Figure
from mirror_assets.direct_lake.table.known import files_by_path
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.values import LiveFile, LoggedCommit

Partition = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class Touched:
    """The partitions in which a commit adds or removes files; `unknown` are removed files whose partition is lost."""

    version: int
    timestamp_ms: int
    operation: str
    partitions: tuple[Partition, ...]
    unknown: int

    def answer(self, partitions: int) -> Answer:
        """The row of the report, for a table with so many partitions."""
        found = f"{self.operation} touches {len(self.partitions)} of {partitions} partitions"
        figures: dict[str, Figure] = {"touched": len(self.partitions), "operation": self.operation}
        if self.unknown:
            found += f", and {self.unknown} files whose partition the log tells no more"
        return Answer("partitions touched", f"version {self.version}", found, figures=figures)


def partitions_touched(log: TableLog, commits: Sequence[LoggedCommit]) -> tuple[Touched, ...]:
    """What each of consecutive commits touches; a table without partitions has one."""
    known = files_by_path(log, commits, (tomb for commit in commits for tomb in commit.removed))
    return tuple(_touched(commit, known) for commit in commits)


def _touched(commit: LoggedCommit, known: Mapping[str, LiveFile]) -> Touched:
    removed = [known.get(tomb.path) for tomb in commit.removed]
    files = [*commit.added, *(file for file in removed if file is not None)]
    partitions = {tuple(file.partition.items()): None for file in files}
    return Touched(
        version=commit.version,
        timestamp_ms=commit.timestamp_ms,
        operation=commit.operation,
        partitions=tuple(partitions),
        unknown=sum(file is None for file in removed),
    )
