"""The whole plan: publish, optimise, purge, vacuum, in this order.

First the mirror takes what it has not seen: what it needs is then less. Next files are rewritten, which changes no row,
so that there is nothing to publish again. VACUUM is last, for it alone deletes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable
from typing import TypedDict

from mirror_assets.direct_lake.errors import FabricNameRefused
from mirror_assets.direct_lake.maintenance.plan_values import (
    Dialect,
    FabricTable,
    LeftOut,
    MaintenanceInput,
    MaintenancePlan,
    SafeRetention,
    Step,
    StepKind,
    Unpublished,
)
from mirror_assets.direct_lake.maintenance.rewrites import PlannedTable
from mirror_assets.direct_lake.maintenance.rewriting import plan_optimize, plan_reorg
from mirror_assets.direct_lake.table.values import Snapshot
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan, effective_retention, hours, hours_at_least

_REWRITING = (StepKind.OPTIMIZE, StepKind.REORG)


def maintenance_plan(snapshot: Snapshot, wanted: MaintenanceInput) -> MaintenancePlan:
    """What to run on the table, and what it will do; nothing is run.

    Raises SchemaUnreadable, PropertyUnreadable and FabricNameRefused.
    """
    table = PlannedTable.of(snapshot, wanted)
    found = _managed() if table.is_managed else _planned(snapshot, table, wanted)
    steps = (*_publish(wanted.unpublished), *(step for step in found if isinstance(step, Step)))
    return MaintenancePlan(
        table=table.name,
        version=snapshot.version,
        dialect=wanted.dialect,
        steps=steps,
        left_out=tuple(step for step in found if isinstance(step, LeftOut)),
        settings=wanted.sizes.statements() if any(step.kind in _REWRITING for step in steps) else (),
        request=_request(snapshot, wanted, steps),
    )


def _planned(snapshot: Snapshot, table: PlannedTable, wanted: MaintenanceInput) -> tuple[Step | LeftOut, ...]:
    """OPTIMIZE comes before REORG: it purges what it rewrites, so that nothing is rewritten twice."""
    table, optimize = plan_optimize(table, wanted)
    table, reorg = plan_reorg(table, wanted)
    rewrites = wanted.rewritten or isinstance(optimize, Step) or isinstance(reorg, Step)
    return (optimize, reorg, *_vacuum(snapshot, table, wanted.retention, rewrites=rewrites))


def _managed() -> tuple[LeftOut, ...]:
    kinds = (StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM)
    return tuple(LeftOut(kind, "the table's catalog maintains it; Delta refuses anyone else") for kind in kinds)


def _publish(unpublished: Unpublished | None) -> tuple[Step, ...]:
    if unpublished is None or unpublished.covered >= unpublished.newest:
        return ()
    why = f"the mirror covers version {unpublished.covered} of {unpublished.newest}, and needs the files of the rest"
    return (Step(StepKind.PUBLISH, unpublished.command, why),)


def _request(snapshot: Snapshot, wanted: MaintenanceInput, steps: Iterable[Step]) -> str | None:
    if wanted.dialect is not Dialect.FABRIC or wanted.fabric is None:
        return None
    needed = 0.0 if wanted.retention is None else wanted.retention.seconds
    return maintenance_request(wanted.fabric, [step.kind for step in steps], max(needed, effective_retention(snapshot)))


def safe_retention(found: VacuumPlan) -> SafeRetention:
    """The retention that keeps what anyone needs; what VACUUM deletes is told only where nothing is set first."""
    if found.statement is not None:
        return SafeRetention(found.min_safe_retention_seconds, found.statement)
    return SafeRetention(found.min_safe_retention_seconds, None, len(found.deleted), found.deleted_bytes)


_FILES = "delta.deletedFileRetentionDuration"
# Models framed before the plan runs need the files that it rewrites, until they are framed anew.
_REFRAMED = 86_400.0


def _vacuum(
    snapshot: Snapshot, table: PlannedTable, safe: SafeRetention | None, *, rewrites: bool
) -> tuple[Step | LeftOut, ...]:
    """The statements; or why there is none. `rewrites`: steps before it replace files. Raises PropertyUnreadable.

    RETAIN is never written: from Delta 4.1 on it is ignored, only the table's property counts (reference `direct-lake`
    §3.3); before that, VACUUM without it goes by the same property.
    """
    if safe is None:
        return (LeftOut(StepKind.VACUUM, "nobody asked the retention guard how long files are needed"),)
    kept = max(effective_retention(snapshot), safe.seconds if safe.statement else 0.0)
    if safe.statement is None and safe.files == 0:
        return (LeftOut(StepKind.VACUUM, "no file is old enough to go"),)
    if kept < safe.seconds:
        return (LeftOut(StepKind.VACUUM, f"{_FILES} is below the {hours_at_least(safe.seconds)} that are needed"),)
    if rewrites and kept < _REFRAMED:
        why = f"{_FILES} is {hours(kept)}: it would delete what was just rewritten, which models still use; frame first"
        return (LeftOut(StepKind.VACUUM, why),)
    why = f"{_deleted_files(safe)}; files that are not live any more are kept for {hours(kept)}"
    steps = [Step(StepKind.VACUUM, f"VACUUM {table.name}", f"{why}, and {hours_at_least(safe.seconds)} are needed")]
    if safe.statement is not None:
        needed = f"frames or the mirror need files for {hours_at_least(safe.seconds)}, longer than the table keeps them"
        steps.insert(0, Step(StepKind.RETENTION, safe.statement, needed))
    return tuple(steps)


def _deleted_files(safe: SafeRetention) -> str:
    if safe.files is None:
        return "old files go"
    size = "" if safe.bytes is None else f" of {safe.bytes:,} bytes"
    return f"{safe.files:,} files{size} go"


_NAME = re.compile(r"[0-9]*[A-Za-z_][A-Za-z0-9_]*")
_LEAST_SECONDS = 7 * 86_400


class _Optimize(TypedDict):
    vOrder: bool


class _Vacuum(TypedDict):
    retentionPeriod: str


class _ExecutionData(TypedDict, total=False):
    tableName: str
    schemaName: str
    optimizeSettings: _Optimize
    purgeDeletionVectors: bool
    vacuumSettings: _Vacuum


def maintenance_request(table: FabricTable, steps: Collection[StepKind], keep_seconds: float) -> str | None:
    """The body, as JSON, that does what these steps do; None when it has nothing to do.

    VACUUM keeps files for at least `keep_seconds`. Raises FabricNameRefused.
    """
    data: _ExecutionData = {"tableName": _accepted(table.name, 256)}
    if table.schema is not None:
        data["schemaName"] = _accepted(table.schema, 128)
    named = len(data)
    if StepKind.OPTIMIZE in steps:
        data["optimizeSettings"] = {"vOrder": True}
    if StepKind.REORG in steps:
        data["purgeDeletionVectors"] = True
    if StepKind.VACUUM in steps:
        data["vacuumSettings"] = {"retentionPeriod": _period(keep_seconds)}
    return json.dumps({"executionData": data}, indent=2) if len(data) > named else None


def _period(seconds: float) -> str:
    """As d:hh:mm:ss."""
    minutes, second = divmod(math.ceil(max(seconds, _LEAST_SECONDS)), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}:{hour:02}:{minute:02}:{second:02}"


def _accepted(name: str, longest: int) -> str:
    if not _NAME.fullmatch(name) or len(name) > longest:
        raise FabricNameRefused(name, longest)
    return name
