"""What of a source is not covered yet, and when it was committed; no JVM."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.delta.state import SourceState
from mirror_assets.delta.times import CommitTimes
from mirror_assets.mirroring.work import TableWork


@dataclass(frozen=True)
class Uncovered:
    """The source's tip and the times of its commits, and the version that is covered; -1 before the first slice."""

    tip: SourceState
    times: CommitTimes
    covered: int

    @property
    def waits(self) -> bool:
        """Whether a commit waits."""
        return self.covered < self.tip.version

    @property
    def next(self) -> int:
        """The next version to cover."""
        return self.covered + 1


def look(work: TableWork) -> Uncovered:
    """The table's source and manifest as they are now. Raises what the log and the manifest raise."""
    tip, manifest = work.log.state(), work.manifest()
    return Uncovered(tip, work.log.times(tip), manifest.covered if manifest else -1)
