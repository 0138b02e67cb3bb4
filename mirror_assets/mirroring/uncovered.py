"""What of a source is not covered yet, and when it was committed; no JVM."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.delta.state import SourceState
from mirror_assets.delta.times import CommitTimes
from mirror_assets.landing.format import Manifest
from mirror_assets.mirroring.work import TableWork


@dataclass(frozen=True)
class Uncovered:
    """The source's tip and the times of its commits, and what has landed, or None."""

    tip: SourceState
    times: CommitTimes
    manifest: Manifest | None

    @property
    def covered(self) -> int:
        """The version that is covered, -1 before the first slice."""
        return self.manifest.covered if self.manifest else -1

    @property
    def next(self) -> int:
        """The next version to cover."""
        return self.covered + 1

    @property
    def waits(self) -> bool:
        """Whether a commit waits."""
        return self.covered < self.tip.version


def look(work: TableWork) -> Uncovered:
    """The table's source and manifest as they are now. Raises what the log and the manifest raise."""
    tip = work.log.state()
    return Uncovered(tip, work.log.times(tip), work.manifest())
