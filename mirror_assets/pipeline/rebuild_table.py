"""Rebuilds a table: stage a snapshot, drop the table folder, wait for the mirror to drop it, load, wait for its return.

Each step is recorded outside the folder before it begins, so a rebuild that was killed continues where it was
(reference `landing-zone` §4.35; docs/landing-folder.md). A drop ends before the load. A table that is taken out of
mirror.yaml keeps its folder: nothing is dropped without a request.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mirror_assets.config.errors import did_you_mean
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.errors import (
    MANIFEST_CORRUPT,
    MANIFEST_LOST,
    METADATA_DIFFERS,
    SLICE_NOT_CHECKED,
    SLICE_NOT_STAGED,
    SLICE_OUTDATED,
    STAGED_FILE_LOST,
)
from mirror_assets.landing.folders import table_names
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.rebuild import (
    RebuildRecord,
    RebuildStep,
    advance_rebuild,
    begin_drop,
    begin_rebuild,
    drop_table_folder,
    is_dropped,
    read_rebuild,
    remove_table,
)
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.monitoring import Mirror, MonitoredTable, TableState
from mirror_assets.pipeline.check_slice import require_passed, run_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import MIRROR_FAILED, MIRROR_SLOW, SNAPSHOT_LOST, SOURCE_BROKE, TABLE_NOWHERE
from mirror_assets.pipeline.land_slice import process_slice, publish_slice
from mirror_assets.pipeline.plan import plan_rest, plan_snapshot
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.pipeline.source_check import check_source
from mirror_assets.pipeline.stage import stage_slice
from mirror_assets.telemetry.progress import expect, working
from mirror_assets.zones import Store


def wait_for(mirror: Mirror, table: TableName, condition: Callable[[MonitoredTable | None], bool], what: str) -> None:
    """Poll the table until the condition holds, also while the mirror can't answer. Raises MIRROR_SLOW at the limit."""
    deadline = time.monotonic() + mirror.pace.limit_seconds
    while True:
        unanswered: RetryError | None = None
        try:
            if condition(mirror.poll_table(table)):
                return
        except RetryError as error:
            unanswered = error
        if time.monotonic() >= deadline:
            raise MIRROR_SLOW(what=f"{table} to {what}", seconds=mirror.pace.limit_seconds) from unanswered
        time.sleep(mirror.pace.pause_seconds)


def wait_until_dropped(mirror: Mirror, table: TableName) -> None:
    """Wait until the mirror has dropped the table. Raises MIRROR_SLOW."""
    wait_for(mirror, table, lambda status: status is None, "be dropped from the mirror")


def wait_until_back(mirror: Mirror, table: TableName) -> None:
    """Wait until the mirror replicates the table again. Raises MIRROR_FAILED and MIRROR_SLOW."""

    def is_back(status: MonitoredTable | None) -> bool:
        if status is not None and status.state is TableState.FAILED:
            raise MIRROR_FAILED(table=str(table), why=status.message or "no reason given")
        return status is not None and status.state is TableState.REPLICATING

    wait_for(mirror, table, is_back, "come back in the mirror")


@dataclass(frozen=True)
class PlannedRebuild:
    """What rebuilding a table now would load again: a version of its source, in this many chunks."""

    table: str
    version: int
    rows: int
    bytes: int
    chunks: int

    @property
    def consequence(self) -> str:
        """What would be deleted and loaded, for a person who is asked to confirm it."""
        return (
            f"rebuilding {self.table} deletes its table folder and loads {self.rows:,} rows "
            f"({self.bytes / 1e6:,.1f} MB) of the source again: queries fail from when the mirror drops the table "
            "until it has applied the last row"
        )


def plan_rebuild(context: TableContext) -> PlannedRebuild:
    """Return what a rebuild would do; reads the source's log. Raises what `plan_snapshot` raises."""
    state = context.log.state()
    slices = plan_snapshot(context, state, epoch=1).slices
    rows, size = sum(one.rows for one in slices), sum(one.bytes for one in slices)
    return PlannedRebuild(str(context.name), state.version, rows, size, len(slices))


def is_rebuilding(context: TableContext) -> bool:
    """Return whether a rebuild or a drop was begun and has not ended."""
    running = drive(read_rebuild(context.name), context.store)
    return running is not None and running.is_running


def rebuild_table(
    context: TableContext, mirror: Mirror, report: Callable[[str], None], reason: str | None = None
) -> Published:
    """Rebuild the table, or continue an interrupted rebuild, and return the publication of the new epoch.

    `reason` is recorded; None: a person requested it.

    The table folder is dropped when the new snapshot is staged and has passed its checks; when that fails, the rebuild
    is cancelled and the landed files stay. Raises ChecksFailed, MIRROR_SLOW, and what staging raises.
    """

    def advance(step: RebuildStep) -> RebuildRecord:
        return drive(advance_rebuild(context.name, record, step), context.store)

    check_source(context.config, context.table, context.log.state())
    record, staged = drive(begin_rebuild(context.name, reason), context.store), None
    if record.step is RebuildStep.STAGING:
        try:
            staged = _stage(context, record, report)
        except MirrorError:
            advance(RebuildStep.FINISHED)
            raise
        record = advance(RebuildStep.DROPPING)
    if record.step is RebuildStep.DROPPING:
        staged = staged or _stage(context, record, report)
        report(f"{context.name}: {record.step.value}")
        drive(drop_table_folder(context.name, record), context.store)
        wait_until_dropped(mirror, context.name)
        record = advance(RebuildStep.LOADING)
    published = _load(context, record, staged, report)
    if record.step is RebuildStep.LOADING:
        record = advance(RebuildStep.RETURNING)
    report(f"{context.name}: {record.step.value}")
    wait_until_back(mirror, context.name)
    advance(RebuildStep.FINISHED)
    return published


def _stage(context: TableContext, record: RebuildRecord, report: Callable[[str], None]) -> SliceKey:
    """Stage and check all chunks of the new epoch's snapshot; return its key. Raises ChecksFailed."""
    report(f"{context.name}: {RebuildStep.STAGING.value}")
    plan = plan_snapshot(context, context.log.state(), record.epoch)
    position = plan.position
    expect(str(context.name), [chunk.rows for chunk in plan.slices])
    for chunk in plan.slices:
        with working(str(context.name)):
            staged, results = run_checks(context, stage_slice(context, chunk, position))
        require_passed(context, staged, results)
        position = position.behind(staged)
    return slice_key(plan.slices[0])


def _load(
    context: TableContext, record: RebuildRecord, staged: SliceKey | None, report: Callable[[str], None]
) -> Published:
    """Publish the new epoch's snapshot, unless it has landed; stage again the chunks that are no longer staged.

    A folder beyond repair is dropped by the next run.
    """
    epoch = record.epoch
    try:
        current = drive(recover(context.name, epoch), context.store)
        if current is None:
            report(f"{context.name}: {RebuildStep.LOADING.value}")
            return publish_slice(context, staged or _stage(context, record, report), epoch)
        if current.manifest.loading is None:
            return Published(Outcome.COVERED, current.manifest)
        report(f"{context.name}: {current.manifest.loading}")
        try:
            return publish_slice(context, current.manifest.loading.key, epoch)
        except (SLICE_NOT_CHECKED.error, SLICE_NOT_STAGED.error, SLICE_OUTDATED.error):
            manifest = context.manifest()
            if manifest is None or manifest.loading is None:
                raise
        plan = plan_rest(context, manifest, manifest.loading)
        return [process_slice(context, plan, chunk, epoch).published for chunk in plan.slices][-1]
    except _DROPPED_AGAIN:
        drive(advance_rebuild(context.name, record, RebuildStep.STAGING), context.store)
        raise


# The table folder is dropped again: what has landed in it can't be continued.
_DROPPED_AGAIN = (
    MANIFEST_CORRUPT.error,
    MANIFEST_LOST.error,
    STAGED_FILE_LOST.error,
    METADATA_DIFFERS.error,
    SNAPSHOT_LOST.error,
    SOURCE_BROKE.error,
)


def require_table(config: Config, store: Store, table: TableName) -> None:
    """Raise SettingError for a table that neither mirror.yaml nor the landing zone has: probably a typo."""
    landed = table_names(store)
    if table in config.names or table in landed or store.list(table.scratch):
        return
    if drive(read_rebuild(table), store) is None:
        known = tuple(str(name) for name in sorted({*config.names, *landed}))
        raise TABLE_NOWHERE(file=config.file, root=store.root, table=str(table), meant=did_you_mean(str(table), known))


def drop_table(store: Store, table: TableName, mirror: Mirror, report: Callable[[str], None]) -> None:
    """Delete the table folder and what is staged for it, and wait for the mirror to drop the table.

    Continues an interrupted drop, and retries while the folder is in use. Raises MIRROR_SLOW, and what the store still
    raises at the end of the wait; running it again continues.
    """
    deadline = time.monotonic() + mirror.pace.limit_seconds
    while True:
        try:
            if not drive(is_dropped(table), store):
                record = drive(begin_drop(table), store)
                report(f"{table}: {record.step.value}")
                drive(remove_table(table, record), store)
                wait_until_dropped(mirror, table)
                drive(advance_rebuild(table, record, RebuildStep.DROPPED), store)
        except (RetryError, UnknownOutcome) as error:
            if time.monotonic() >= deadline:
                raise
            report(error.what)
            time.sleep(mirror.pace.pause_seconds)
        else:
            return
