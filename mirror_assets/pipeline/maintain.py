"""Runs what maintenance a table's settings ask for: OPTIMIZE, REORG and VACUUM, and never what takes from a reader."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mirror_assets.delta.losses import DataFileMissing, FileUnfound
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.direct_lake.footers.errors import LiveFileMissing
from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.footers.reader import FooterReader
from mirror_assets.direct_lake.guard.plan import VacuumPlan
from mirror_assets.direct_lake.guardrails.skus import sku_of
from mirror_assets.direct_lake.layout.dropped import dropped_bytes
from mirror_assets.direct_lake.maintenance.plan import maintenance_plan
from mirror_assets.direct_lake.maintenance.retention import safe_retention
from mirror_assets.direct_lake.maintenance.values import (
    LeftOut,
    MaintenanceInput,
    MaintenancePlan,
    Step,
    StepKind,
    Worth,
)
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.table.losses import SourceRead, proved
from mirror_assets.direct_lake.table.values import Snapshot
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import vacuum_refused
from mirror_assets.pipeline.retention_consumers import source_guard

# VACUUM runs a while after the guard has looked, on a machine whose clock may be ahead of ours.
_MARGIN_SECONDS = 3_600
_NEVER = sys.maxsize


@dataclass(frozen=True)
class TableState:
    """The files of a table that a step changes: live ones, and all that are stored, and their bytes."""

    version: int
    live_files: int
    live_bytes: int
    stored_files: int
    stored_bytes: int


@dataclass(frozen=True)
class StepDone:
    """A step that has run, and the table before and after it."""

    step: Step
    before: TableState
    after: TableState
    seconds: float


def maintain(
    context: TableContext, open_log: Callable[[], TableLog], report: Callable[[str], None]
) -> Iterator[StepDone]:
    """The steps, each as it has run; what is left out is reported with its reason.

    VACUUM is planned on the table as rewriting has left it. Raises VacuumRefused before a file is deleted that a frame,
    the mirror or the history needs; and what logs, guard, plan and Spark raise.
    """
    rewritten = False
    for rewriting in (True, False):
        log = open_log()
        plan = _plan(context, log, rewriting=rewriting, rewritten=rewritten)
        for left_out in plan.left_out:
            if _is_asked(context, left_out) and _is_rewriting(left_out) is rewriting:
                report(f"{context.name}: no {left_out.kind.value}: {left_out.why}")
        steps = [step for step in plan.steps if _is_asked(context, step) and _is_rewriting(step) is rewriting]
        yield from _run(context, plan, steps, open_log)
        rewritten = bool(steps)


def _plan(context: TableContext, log: TableLog, *, rewriting: bool, rewritten: bool) -> MaintenancePlan:
    """What rewrites files; or, from the table as that has left it, VACUUM."""
    settings, snapshot, guard = context.table.maintenance, log.snapshot(), None
    if settings.vacuum and not rewriting:
        guard = source_guard(context.config, context.table, log, context.manifest(), time.time() + _MARGIN_SECONDS)
        _refuse_unsafe(context, guard, snapshot)
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
        retention=None if guard is None else safe_retention(guard),
        rewritten=rewritten,
    )
    return maintenance_plan(snapshot, wanted)


def _refuse_unsafe(context: TableContext, guard: VacuumPlan, snapshot: Snapshot) -> None:
    if guard.is_safe:
        return
    needs = {*guard.untold, *(need for file in guard.threatened for need in file.needed_by)}
    named = tuple(str(need) for need in sorted(needs))
    raise vacuum_refused(str(context.name), len(guard.threatened), named, guard.keeping(snapshot.metadata))


def _dropped_bytes(snapshot: Snapshot, log: TableLog) -> dict[str, int]:
    footers = FooterReader(log.uri, log.files, dictionaries=False).read(snapshot.files)
    return dropped_bytes(footers, ColumnNames.of(snapshot.metadata))


def _run(
    context: TableContext, plan: MaintenancePlan, steps: list[Step], open_log: Callable[[], TableLog]
) -> Iterator[StepDone]:
    before = state_of(open_log()) if steps else None
    for step in steps:
        began = time.monotonic()
        with _settings(context.spark(), plan.settings):
            _execute(context, step.statement, plan.table)
        after = state_of(open_log())
        yield StepDone(step, before or after, after, time.monotonic() - began)
        before = after


def _execute(context: TableContext, statement: str, table: str) -> None:
    try:
        with spark_errors(f"{context.name}, {statement}"):
            context.spark().sql(statement).collect()
    except FileUnfound as error:
        newest = context.log.state().version
        meant = proved(str(context.name), context.log, SourceRead(newest, newest, versions=(newest,)), error)
        if isinstance(meant, DataFileMissing):  # of the newest version: a rebuild would miss it, too
            raise LiveFileMissing(table, meant.file) from error
        raise meant from error


@contextmanager
def _settings(session: SparkSession, statements: Sequence[str]) -> Iterator[None]:
    """The table's session as the plan wants it, for a while: the table is mirrored in it, too."""
    names = [statement.removeprefix("SET ").partition(" = ")[0] for statement in statements]
    known = {name: session.conf.get(name, None) for name in names}
    try:
        for statement in statements:
            session.sql(statement)
        yield
    finally:
        for name, value in known.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def state_of(log: TableLog) -> TableState:
    """The table's files as they are now."""
    snapshot, stored = log.snapshot(), log.listing(hidden=True)
    return TableState(
        version=snapshot.version,
        live_files=len(snapshot.files),
        live_bytes=sum(file.bytes for file in snapshot.files),
        stored_files=len(stored),
        stored_bytes=sum(file.bytes for file in stored),
    )


def _is_rewriting(step: Step | LeftOut) -> bool:
    return step.kind in (StepKind.OPTIMIZE, StepKind.REORG)


def _is_asked(context: TableContext, step: Step | LeftOut) -> bool:
    requested = context.table.maintenance
    return {
        StepKind.OPTIMIZE: requested.optimize,
        StepKind.REORG: requested.purge,
        StepKind.VACUUM: requested.vacuum,
    }.get(step.kind, False)
