"""What of a source is not covered yet, and when it was committed; no JVM."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.config import Start
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.rebuild import first_life
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.start import begins_with_snapshot
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.ranges import CommitTimes, first_version
from mirror_assets.source.state import SourceState


@dataclass(frozen=True)
class Uncovered:
    """The source's tip and the times of its commits, and what has landed, or None.

    `start` is the first version that will land of a mirror that has not begun, and will without a snapshot; else None.
    """

    tip: SourceState
    times: CommitTimes
    manifest: Manifest | None
    start: int | None

    @property
    def covered(self) -> int:
        """The version that is covered, -1 before the first slice."""
        return self.manifest.covered if self.manifest else -1

    @property
    def next(self) -> int:
        """The next version to cover."""
        return self.covered + 1 if self.start is None else self.start

    @property
    def next_read(self) -> int | None:
        """The next version whose own changes are read; None before a snapshot, which takes what is there by then."""
        if self.manifest is None:
            return self.start
        loading = self.manifest.loading
        return self.next if loading is None else loading.key.last + 1

    @property
    def waits(self) -> bool:
        """Whether a commit waits."""
        return self.next <= self.tip.version


def look(work: TableWork) -> Uncovered:
    """The table's source and manifest as they are now. Raises what the log and the manifest raise."""
    tip, manifest = work.log.state(), work.manifest()
    times = work.log.times(tip)
    return Uncovered(tip, times, manifest, _start(work, times) if manifest is None else None)


def _start(work: TableWork, times: CommitTimes) -> int | None:
    """The version that the table's `start` names now, the next one at most; None where a snapshot comes first."""
    start, following = work.table.start, times.last + 1
    if begins_with_snapshot(work, drive(first_life(work.name), work.store)):
        return None
    if isinstance(start, Start):
        return following
    version = first_version(start, times)
    return following if version is None else min(version, following)
