"""How far a table is behind its source: pending commits, lag, its gauges, and how long the next commit can be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_assets.config.setting_values import Changes, OnBreak
from mirror_assets.config.table_settings import Start
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import first_epoch
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.many_tables import is_silence
from mirror_assets.pipeline.next_action import Action, Rest
from mirror_assets.pipeline.plan import TablePlan, begins_with_snapshot
from mirror_assets.source.actions import Actions, LoggedFile
from mirror_assets.source.commits import SourceState, feed_files
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import CommitTimes
from mirror_assets.source.table_properties import Retention
from mirror_assets.telemetry.record import table_gauges
from mirror_assets.verify.timeliness import Lag, ReadDeadline


@dataclass(frozen=True)
class PendingCommits:
    """The source's newest version and commit times, and the manifest, or None before the first slice.

    `start` is the first version to land of a mirror that begins without a snapshot and has not begun; else None.
    """

    tip: SourceState
    times: CommitTimes
    manifest: Manifest | None
    start: int | None

    @property
    def covered(self) -> int:
        """Return the covered version, -1 before the first slice."""
        return self.manifest.covered if self.manifest else -1

    @property
    def next(self) -> int:
        """Return the next version to land."""
        return self.covered + 1 if self.start is None else self.start

    @property
    def next_read(self) -> int | None:
        """Return the next version whose changes will be read; None before a snapshot, which reads whatever is there."""
        if self.manifest is None:
            return self.start
        loading = self.manifest.loading
        return self.next if loading is None else loading.key.last + 1

    @property
    def waits(self) -> bool:
        """Return whether a commit waits to be mirrored."""
        return self.next <= self.tip.version


def pending_commits(context: TableContext) -> PendingCommits:
    """Read the table's source and manifest as they are now. Raises what the log and the manifest raise."""
    tip, manifest = context.log.state(), context.manifest()
    times = context.log.times(tip)
    if manifest is not None or begins_with_snapshot(context, drive(first_epoch(context.name), context.store)):
        return PendingCommits(tip, times, manifest, None)
    start, following = context.table.start, times.last + 1
    version = None if isinstance(start, Start) else times.first_from(start)
    return PendingCommits(tip, times, None, following if version is None else min(version, following))


def table_lag(pending: PendingCommits, now: float) -> Lag:
    """Return the lag at `now` (seconds since 1970): the age of the oldest pending commit, by its commit time.

    Reads one commit at most. A mirror that begins without a snapshot counts from its start.
    """
    tip, covered, times = pending.tip.version, pending.next - 1, pending.times
    ahead = max(0.0, pending.tip.timestamp_ms / 1000 - now)
    if not pending.waits:
        return Lag(tip, covered, 0.0, ahead)
    oldest = max(pending.next, times.first)
    return Lag(tip, covered, max(0.0, now - times.at(oldest) / 1000), ahead)


# The files of one commit have the same age and VACUUM removes them together: a sample is enough.
_SAMPLE = 8
AT_BREAK = {
    OnBreak.REBUILD: "the table is rebuilt",
    OnBreak.REPAIR: "the table is repaired, or rebuilt where a repair can't help",
    OnBreak.HOLD: "the table is held until you run `mirror-assets rebuild`",
}
"""What happens to a table at a commit that can't be followed."""
_REFUSED = "the mirror can't begin with it, as `start` says"
Needed = Callable[[Actions], Sequence[LoggedFile]]
"""Returns the files that a commit's changes are read from."""
_NEEDED: dict[Changes, Needed] = {
    Changes.FEED: feed_files,
    Changes.ROW_TRACKING: lambda commit: commit.data_removed,
    Changes.FILES: lambda commit: commit.data_removed,
    Changes.APPEND_ONLY: lambda commit: commit.data_added,
}


def feed_deadline(context: TableContext, pending: PendingCommits, now: float) -> ReadDeadline:
    """Return until when the next commit can be read, at `now` (seconds since 1970), from the log and its files.

    A table that begins with a snapshot needs no commit in particular before it. Raises PROPERTY_UNREADABLE.
    """
    then = _REFUSED if pending.start is not None else AT_BREAK[context.table.on_break]
    needed = _NEEDED[context.table.changes]
    return deadline_at(context.log, pending.tip, pending.times, pending.next_read, needed, then, now)


def deadline_at(
    log: DeltaLog,
    tip: SourceState,
    times: CommitTimes,
    next_read: int | None,
    needed: Needed,
    then: str,
    now: float,
) -> ReadDeadline:
    """Return the deadline at `now` for a reader whose next version is `next_read`; None when it has not begun."""
    waits = next_read is not None and next_read <= tip.version
    version = next_read if next_read is not None and waits else tip.version + 1
    is_there = waits and version >= times.first
    return ReadDeadline(
        version=version,
        waits=waits,
        committed=times.at(version) / 1000 if is_there else None,
        retention=Retention.of(log.uri, tip.metadata),
        now=now,
        then=then,
        lost=log.lost_files(version, lambda commit: needed(commit)[:_SAMPLE]) if is_there else (),
    )


# Minimum seconds between reads of a log that a poll did not read: opening it costs more than a poll.
_READ_SECONDS = 5.0


def note_poll(context: TableContext, action: Action | MirrorError) -> None:
    """Update the gauges from a poll of the table; read source and manifest if the poll does not have the answer.

    If the source can't be read, pending commits remain pending, and a lag of 0 is no longer exported.
    """
    name, gauges = str(context.name), table_gauges()
    if gauges is None:
        return
    if isinstance(action, Rest) and action.mark is not None:
        gauges.set_source(name, action.mark.tip.version, action.mark.tip.version, None)
    elif isinstance(action, MirrorError) and is_silence(action):
        gauges.set_unreadable(name)
    elif time.time() - gauges.progress(name).polled >= _READ_SECONDS:
        try:
            pending, now = pending_commits(context), time.time()
            lag = table_lag(pending, now)
            gauges.set_source(name, lag.tip, pending.covered, now - lag.seconds if pending.waits else None)
        except Exception:  # noqa: BLE001 a defect of the gauges must not stop the polls of the table
            gauges.set_unreadable(name)


def note_plan(table: TableName, plan: TablePlan) -> None:
    """Update the gauges from a plan, unless the poll before it knows more: for a snapshot, or a break at the start."""
    gauges = table_gauges()
    if gauges is None or plan.manifest is None or plan.manifest.loading is not None:
        return
    covered, tip = plan.manifest.covered, plan.state.version
    if plan.slices or tip == covered:
        since = plan.slices[0].first_commit_ms / 1000 if plan.slices else None
        gauges.set_source(str(table), tip, covered, since)


def note_covered(table: TableName, plan: TablePlan, index: int, covered: int) -> None:
    """Update the gauges after the slice at this index of the plan has landed.

    Commits after the last slice have been pending at most since its last commit; the next poll has the exact time.
    """
    gauges, following = table_gauges(), plan.slices[index + 1 :]
    if gauges is None:
        return
    since: float | None = None
    if following:
        since = following[0].first_commit_ms / 1000
    elif plan.state.version > covered:
        since = plan.slices[index].last_commit_ms / 1000
    gauges.set_covered(str(table), covered, since)
