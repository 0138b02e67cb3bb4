"""Plan a table's maintenance: publish, optimise, purge, vacuum, in this order.

First the mirror takes what it has not seen: what it needs is then less. Next files are rewritten, which changes no row,
so that there is nothing to publish again. VACUUM is last, for it alone deletes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection

from mirror_assets.direct_lake.errors import fabric_name_refused
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
from mirror_assets.direct_lake.maintenance.rewriting import PlannedTable, plan_optimize, plan_reorg
from mirror_assets.direct_lake.vacuum.vacuum_plan import effective_retention, hours, hours_at_least

_FILES = "delta.deletedFileRetentionDuration"
# Models framed before the plan runs need the files that it rewrites, until they are refreshed.
_REFRAMED = 86_400.0
_FABRIC_NAME = re.compile(r"[0-9]*[A-Za-z_][A-Za-z0-9_]*")
_LEAST_FABRIC_SECONDS = 7 * 86_400


def maintenance_plan(snapshot: Snapshot, wanted: MaintenanceInput) -> MaintenancePlan:
    """Plan what to run on the table, and predict what it does; nothing is run.

    Raises SchemaUnreadable, PropertyUnreadable, and SettingError for a name that Fabric refuses.
    """
    table = PlannedTable.of(snapshot, wanted)
    found = _managed() if table.is_managed else _steps(snapshot, table, wanted)
    steps = (*_publish(wanted.unpublished), *(step for step in found if isinstance(step, Step)))
    kinds = [step.kind for step in steps]
    request = None
    if wanted.dialect is Dialect.FABRIC and wanted.fabric is not None:
        needed = 0.0 if wanted.retention is None else wanted.retention.seconds
        request = _fabric_request(wanted.fabric, kinds, max(needed, effective_retention(snapshot)))
    return MaintenancePlan(
        table=table.name,
        version=snapshot.version,
        dialect=wanted.dialect,
        steps=steps,
        left_out=tuple(step for step in found if isinstance(step, LeftOut)),
        settings=wanted.sizes.statements() if any(kind.rewrites for kind in kinds) else (),
        request=request,
    )


def _managed() -> tuple[LeftOut, ...]:
    kinds = (StepKind.OPTIMIZE, StepKind.REORG, StepKind.VACUUM)
    return tuple(LeftOut(kind, "the table's catalog maintains it; Delta refuses anyone else") for kind in kinds)


def _publish(unpublished: Unpublished | None) -> tuple[Step, ...]:
    if unpublished is None or unpublished.covered >= unpublished.newest:
        return ()
    why = f"the mirror covers version {unpublished.covered} of {unpublished.newest}, and needs the files of the rest"
    return (Step(StepKind.PUBLISH, unpublished.command, why),)


def _steps(snapshot: Snapshot, table: PlannedTable, wanted: MaintenanceInput) -> tuple[Step | LeftOut, ...]:
    """OPTIMIZE comes before REORG: it purges what it rewrites, so that nothing is rewritten twice."""
    table, optimize = plan_optimize(table, wanted)
    table, reorg = plan_reorg(table, wanted)
    rewrites = wanted.rewritten or isinstance(optimize, Step) or isinstance(reorg, Step)
    return (optimize, reorg, *_vacuum(snapshot, table.name, wanted.retention, rewrites=rewrites))


def _vacuum(
    snapshot: Snapshot, table: str, safe: SafeRetention | None, *, rewrites: bool
) -> tuple[Step | LeftOut, ...]:
    """VACUUM, with a retention that keeps what consumers need. `rewrites`: steps before it replace files.

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
    size = "" if safe.bytes is None else f" of {safe.bytes:,} bytes"
    deleted = "old files go" if safe.files is None else f"{safe.files:,} files{size} go"
    why = f"{deleted}; files that are not live any more are kept for {hours(kept)}, and {hours_at_least(safe.seconds)}"
    steps = [Step(StepKind.VACUUM, f"VACUUM {table}", f"{why} are needed")]
    if safe.statement is not None:
        needed = f"frames or the mirror need files for {hours_at_least(safe.seconds)}, longer than the table keeps them"
        steps.insert(0, Step(StepKind.RETENTION, safe.statement, needed))
    return tuple(steps)


def _fabric_request(table: FabricTable, steps: Collection[StepKind], keep_seconds: float) -> str | None:
    """The JSON body that has Fabric maintain a lakehouse's table, keeping files for `keep_seconds`; None for no steps.

    "Run On Demand Table Maintenance" (preview), POST …/workspaces/{workspace}/lakehouses/{lakehouse}/jobs/
    TableMaintenance/instances. It knows no WHERE, so it optimises whole tables, and refuses retentions below 7 days.
    """
    named = {"tableName": _accepted(table.name, 256)}
    if table.schema is not None:
        named["schemaName"] = _accepted(table.schema, 128)
    context: dict[str, object] = {}
    if StepKind.OPTIMIZE in steps:
        context["optimizeSettings"] = {"vOrder": True}
    if StepKind.REORG in steps:
        context["purgeDeletionVectors"] = True
    if StepKind.VACUUM in steps:
        context["vacuumSettings"] = {"retentionPeriod": _period(keep_seconds)}
    return json.dumps({"executionData": {**named, **context}}, indent=2) if context else None


def _period(seconds: float) -> str:
    """As d:hh:mm:ss."""
    whole_minutes, second = divmod(math.ceil(max(seconds, _LEAST_FABRIC_SECONDS)), 60)
    whole_hours, minute = divmod(whole_minutes, 60)
    days, hour = divmod(whole_hours, 24)
    return f"{days}:{hour:02}:{minute:02}:{second:02}"


def _accepted(name: str, longest: int) -> str:
    if not _FABRIC_NAME.fullmatch(name) or len(name) > longest:
        raise fabric_name_refused(name, longest)
    return name
