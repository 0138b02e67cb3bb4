"""From the guard to the plan."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets.direct_lake.maintenance_plan import MaintenanceInput, StepKind, maintenance_plan
from mirror_assets.direct_lake.model_frames import Frame
from mirror_assets.direct_lake.vacuum import plan_vacuum
from mirror_assets.source.log import DeltaLog

_DAY = 86_400


def test_a_frame_that_is_older_than_the_property_comes_with_a_statement(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2, 3]}))
    DeltaTable(tmp_path).delete("id = 2")
    log = DeltaLog(str(tmp_path))
    written = log.time_ms(1) / 1000
    snapshot = log.snapshot()

    soon = plan_vacuum(log, written + _DAY, [Frame("model", 0)])
    assert (soon.statement, soon.deleted) == (None, ())
    assert _DAY - 60 < soon.min_safe_retention_seconds < _DAY + 60
    assert maintenance_plan(snapshot, MaintenanceInput(vacuum=soon)).steps == ()

    late = plan_vacuum(log, written + 8 * _DAY, [Frame("model", 0)])
    plan = maintenance_plan(snapshot, MaintenanceInput(vacuum=late))
    assert [step.kind for step in plan.steps] == [StepKind.RETENTION, StepKind.VACUUM]
    assert plan.steps[0].statement == late.statement

    free = plan_vacuum(log, written + 8 * _DAY)
    assert (free.min_safe_retention_seconds, free.statement, len(free.deleted)) == (0.0, None, 1)
