"""The body of a request that has Fabric maintain a lakehouse's table ("Run On Demand Table Maintenance", preview).

POST …/workspaces/{workspace}/lakehouses/{lakehouse}/jobs/TableMaintenance/instances. It knows no WHERE, so it optimises
whole tables, and refuses retentions below seven days.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import TypedDict

from mirror_assets.direct_lake.maintenance.errors import FabricNameRefused
from mirror_assets.direct_lake.maintenance.values import FabricTable, StepKind

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
