"""Run the maintenance that a table's settings enable: OPTIMIZE, REORG, and VACUUM of files that no consumer needs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mirror_assets.direct_lake.errors import live_file_missing
from mirror_assets.direct_lake.footers.footer_reader import FooterReader
from mirror_assets.direct_lake.footers.parquet_columns import ColumnNames
from mirror_assets.direct_lake.guardrails.skus import sku_of
from mirror_assets.direct_lake.maintenance.maintenance_plan import maintenance_plan
from mirror_assets.direct_lake.maintenance.plan_values import (
    LeftOut,
    MaintenanceInput,
    MaintenancePlan,
    SafeRetention,
    Step,
    StepKind,
    Worth,
)
from mirror_assets.direct_lake.table_layout import dropped_bytes
from mirror_assets.encode.spark_errors import spark_errors
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import vacuum_refused
from mirror_assets.pipeline.retention_consumers import source_guard
from mirror_assets.source.losses import DataFileMissing, FileUnfound, SourceRead, proved
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.table_log import TableLog

# VACUUM runs later than the guard's check, on a machine whose clock may be ahead of ours.
_MARGIN_SECONDS = 3_600
_NEVER = sys.maxsize


@dataclass(frozen=True)
class TableState:
    """Number and bytes of a table's files at a version: the live ones, and all in its folder."""

    version: int
    live_files: int
    live_bytes: int
    stored_files: int
    stored_bytes: int


@dataclass(frozen=True)
class StepDone:
    """A finished maintenance step, and the table's files before and after it."""

    step: Step
    before: TableState
    after: TableState
    seconds: float


def maintain(
    context: TableContext, open_log: Callable[[], TableLog], report: Callable[[str], None]
) -> Iterator[StepDone]:
    """Run the enabled maintenance steps and yield each when it has run; report each omitted step with its reason.

    VACUUM is planned after OPTIMIZE and REORG, on the table as they leave it. Raises SettingError (vacuum_refused)
    instead of deleting a file that a frame, the mirror or the history needs; and what the Delta log, the guard, the
    plan and Spark raise.
    """
    rewritten = False
    for rewriting in (True, False):
        plan = _plan(context, open_log(), rewriting=rewriting, rewritten=rewritten)
        for left_out in plan.left_out:
            if _is_wanted(context, left_out, rewriting=rewriting):
                report(f"{context.name}: no {left_out.kind.value}: {left_out.why}")
        steps = [step for step in plan.steps if _is_wanted(context, step, rewriting=rewriting)]
        yield from _run(context, plan.table, steps, open_log)
        rewritten = bool(steps)


def _is_wanted(context: TableContext, step: Step | LeftOut, *, rewriting: bool) -> bool:
    """Return whether the settings enable the step, and it rewrites files or not, as `rewriting` says."""
    settings = context.table.maintenance
    enabled = {
        StepKind.OPTIMIZE: settings.optimize,
        StepKind.REORG: settings.purge,
        StepKind.VACUUM: settings.vacuum,
    }
    return enabled.get(step.kind, False) and step.kind.rewrites is rewriting


def _plan(context: TableContext, log: TableLog, *, rewriting: bool, rewritten: bool) -> MaintenancePlan:
    """Plan the steps that rewrite files (`rewriting`) or VACUUM; `rewritten` tells the latter that steps have run."""
    settings, snapshot, retention = context.table.maintenance, log.snapshot(), None
    if settings.vacuum and not rewriting:
        retention = _safe_retention(context, log, snapshot)
    sku = context.table.direct_lake.sku
    worth = Worth(
        min_files=Worth.min_files if settings.optimize else _NEVER,
        max_files=sku_of(sku).files if sku is not None and settings.optimize else None,
        wasted_share=Worth.wasted_share if settings.purge else _NEVER,
    )
    wanted = MaintenanceInput(
        sizes=settings.sizes,
        worth=worth,
        dropped=_dropped_bytes(snapshot, log) if settings.purge and rewriting else {},
        retention=retention,
        rewritten=rewritten,
    )
    return maintenance_plan(snapshot, wanted)


def _safe_retention(context: TableContext, log: TableLog, snapshot: Snapshot) -> SafeRetention:
    """Return a retention that keeps all needed files. Raises vacuum_refused if VACUUM would delete one of them now."""
    guard = source_guard(context.config, context.table, log, context.manifest(), time.time() + _MARGIN_SECONDS)
    if not guard.is_safe:
        needs = {*guard.untold, *(need for file in guard.threatened for need in file.needed_by)}
        named = tuple(str(need) for need in sorted(needs))
        raise vacuum_refused(str(context.name), len(guard.threatened), named, guard.keeping(snapshot.metadata))
    return SafeRetention.of(guard)


def _dropped_bytes(snapshot: Snapshot, log: TableLog) -> dict[str, int]:
    footers = FooterReader(log.uri, log.files, dictionaries=False).read(snapshot.files)
    return dropped_bytes(footers, ColumnNames.of(snapshot.metadata))


def _run(
    context: TableContext, table: str, steps: Sequence[Step], open_log: Callable[[], TableLog]
) -> Iterator[StepDone]:
    before = state_of(open_log()) if steps else None
    for step in steps:
        began = time.monotonic()
        with _session_settings(
            context.spark(), context.table.maintenance.sizes.settings() if step.kind.rewrites else {}
        ):
            _execute(context, step.statement, table)
        after = state_of(open_log())
        yield StepDone(step, before or after, after, time.monotonic() - began)
        before = after


@contextmanager
def _session_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set these settings in the table's session, and restore the old values after the block: mirroring uses it, too."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _execute(context: TableContext, statement: str, table: str) -> None:
    try:
        with spark_errors(f"{context.name}, {statement}"):
            context.spark().sql(statement).collect()
    except FileUnfound as error:
        newest = context.log.state().version
        cause = proved(str(context.name), context.log, SourceRead(newest, newest, versions=(newest,)), error)
        if isinstance(cause, DataFileMissing):  # the newest version needs the file, so a rebuild would fail, too
            raise live_file_missing(table, cause.file) from error
        raise cause from error


def state_of(log: TableLog) -> TableState:
    """Count the table's files as they are now."""
    snapshot, stored = log.snapshot(), log.listing(hidden=True)
    return TableState(
        version=snapshot.version,
        live_files=len(snapshot.files),
        live_bytes=sum(file.bytes for file in snapshot.files),
        stored_files=len(stored),
        stored_bytes=sum(file.bytes for file in stored),
    )
