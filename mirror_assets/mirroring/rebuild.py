"""Rebuilds a table: stage a snapshot, drop the folder, wait until the mirror dropped it, land, wait until it is back.

Each step is recorded outside the folder before the next begins, so a rebuild that was killed goes on where it was
(reference `landing-zone` §4.35; docs/landing-folder.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mirror_assets.config import OnBreak, Start
from mirror_assets.errors import MirrorError, RetryError
from mirror_assets.landing.errors import (
    ManifestCorrupt,
    ManifestLost,
    MetadataDiffers,
    SliceNotChecked,
    SliceNotStaged,
    StagedFileLost,
)
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    begin_rebuild,
    drop_again,
    drop_table_folder,
)
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.carry import carry_slice, stage_passed
from mirror_assets.mirroring.errors import MirrorSlow, SnapshotLost, SourceBroke
from mirror_assets.mirroring.land import land_slice
from mirror_assets.mirroring.planning import plan_rest, plan_snapshot
from mirror_assets.mirroring.source import check_source
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.ranges import EVERYTHING, Range


@dataclass(frozen=True)
class MirrorWait:
    """How a rebuild watches the mirror: ask, pause, ask again, up to a limit."""

    dropped: Callable[[], bool]
    returned: Callable[[], bool]
    pause_seconds: float = 2.0
    limit_seconds: float = 600.0

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for the condition, also while it can't be asked. Raises MirrorSlow: run again to go on waiting."""
        deadline = time.monotonic() + self.limit_seconds
        while True:
            unanswered: RetryError | None = None
            try:
                if condition():
                    return
            except RetryError as error:
                unanswered = error
            if time.monotonic() >= deadline:
                raise MirrorSlow(what, self.limit_seconds) from unanswered
            time.sleep(self.pause_seconds)


def may_rebuild(work: TableWork, asked: Range = EVERYTHING) -> bool:
    """Whether a break is followed by a rebuild without asking anybody.

    Not in a run of a range, for a rebuild goes to the source's tip. And not in the place of a start that is no
    snapshot: who has chosen it does not want the whole table.
    """
    if work.table.on_break is OnBreak.HOLD or not asked.is_everything:
        return False
    return work.table.start is Start.SNAPSHOT or work.manifest() is not None


def rebuild_table(work: TableWork, wait: MirrorWait, report: Callable[[str], None]) -> Published:
    """The publication of the table's new life, begun now or by a rebuild that was interrupted.

    Nothing is dropped before the snapshot that takes its place is staged and has passed its checks: if it can't be, the
    rebuild is called off, and what has landed stays. Raises ChecksFailed, MirrorSlow, and what staging raises.
    """
    check_source(work.config, work.table, work.log.state())
    record, staged = drive(begin_rebuild(work.name), work.store), None
    if record.step is RebuildStep.STAGING:
        staged = _stage_or_call_off(work, record, report)
        record = drive(advance_rebuild(work.name, record, RebuildStep.DROPPING), work.store)
    if record.step is RebuildStep.DROPPING:
        staged = staged or _stage(work, record, report)
        record = _drop(work, record, wait, report)
    published = _load(work, record, staged, report)
    if record.step is RebuildStep.LOADING:
        record = drive(advance_rebuild(work.name, record, RebuildStep.RETURNING), work.store)
    report(f"{work.name}: {record.step.value}")
    wait.until(wait.returned, f"{work.name} to come back in the mirror")
    drive(advance_rebuild(work.name, record, RebuildStep.FINISHED), work.store)
    return published


def _stage_or_call_off(work: TableWork, record: RebuildRecord, report: Callable[[str], None]) -> SliceKey:
    try:
        return _stage(work, record, report)
    except MirrorError:
        drive(advance_rebuild(work.name, record, RebuildStep.FINISHED), work.store)
        raise


def _stage(work: TableWork, record: RebuildRecord, report: Callable[[str], None]) -> SliceKey:
    """The snapshot of the new life, all chunks of it staged and passed by their checks. Raises ChecksFailed."""
    report(f"{work.name}: {RebuildStep.STAGING.value}")
    planned, footing = plan_snapshot(work, record.life)
    for chunk in planned:
        staged, _ = stage_passed(work, chunk, footing)
        footing = footing.behind(staged)
    return slice_key(planned[0])


def _drop(work: TableWork, record: RebuildRecord, wait: MirrorWait, report: Callable[[str], None]) -> RebuildRecord:
    report(f"{work.name}: {record.step.value}")
    drive(drop_table_folder(work.name, record), work.store)
    wait.until(wait.dropped, f"{work.name} to be dropped from the mirror")
    return drive(advance_rebuild(work.name, record, RebuildStep.LOADING), work.store)


def _load(work: TableWork, record: RebuildRecord, staged: SliceKey | None, report: Callable[[str], None]) -> Published:
    """The snapshot of the new life, landed now or before. What can't be mended is dropped by the next rebuild."""
    try:
        standing = drive(recover(work.name, record.life), work.store)
        if standing is None:
            report(f"{work.name}: {RebuildStep.LOADING.value}")
            return land_slice(work, staged or _stage(work, record, report), record.life)
        if standing.manifest.loading is None:
            return Published(Outcome.COVERED, standing.manifest)
        report(f"{work.name}: {standing.manifest.loading}")
        return _load_rest(work, standing.manifest.loading.key, record.life)
    except (ManifestCorrupt, ManifestLost, MetadataDiffers, SnapshotLost, SourceBroke, StagedFileLost):
        drive(drop_again(work.name, record), work.store)
        raise


def _load_rest(work: TableWork, key: SliceKey, life: int) -> Published:
    """The publication of the last chunk. Chunks that are staged land as they are, others are staged again."""
    try:
        return land_slice(work, key, life)
    except (SliceNotChecked, SliceNotStaged):
        manifest = work.manifest()
        if manifest is None or manifest.loading is None:
            raise
    rest = [carry_slice(work, planned, life).published for planned in plan_rest(work, manifest)]
    return rest[-1]
