"""The whole plan: publish, optimise, purge, vacuum, in this order.

First the mirror takes what it has not seen: what it needs is then less. Next files are rewritten, which changes no row,
so that there is nothing to publish again. VACUUM is last, for it alone deletes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mirror_assets.direct_lake.guard.vacuum import effective_retention
from mirror_assets.direct_lake.maintenance.optimize import plan_optimize
from mirror_assets.direct_lake.maintenance.reorg import plan_reorg
from mirror_assets.direct_lake.maintenance.request import maintenance_request
from mirror_assets.direct_lake.maintenance.table import PlannedTable
from mirror_assets.direct_lake.maintenance.vacuum import plan_vacuum
from mirror_assets.direct_lake.maintenance.values import (
    Dialect,
    LeftOut,
    MaintenanceInput,
    MaintenancePlan,
    Step,
    StepKind,
    Unpublished,
)
from mirror_assets.source.replay import Snapshot

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
    return (optimize, reorg, *plan_vacuum(snapshot, table, wanted.retention, rewrites=rewrites))


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
