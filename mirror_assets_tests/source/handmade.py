"""Delta logs written by hand: what no writer at hand produces, or only slowly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_assets.source.actions import Metadata
from mirror_assets.source.batching import Limits
from mirror_assets.source.breaks import Needs
from mirror_assets.source.commits import Commit
from mirror_assets.source.planner import Plan, PlanRequest
from mirror_assets.source.schema import canonical

Action = dict[str, object]


def commit_file(table: Path, version: int) -> Path:
    """Where the version's commit file is."""
    return table / "_delta_log" / f"{version:020d}.json"


def write_commit(table: Path, version: int, actions: Sequence[Action]) -> None:
    """Write a commit file."""
    path = commit_file(table, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions))


def info(operation: str = "WRITE", *, timestamp: int = 1_700_000_000_000, **metrics: object) -> Action:
    """A commitInfo action."""
    return {"commitInfo": {"timestamp": timestamp, "operation": operation, "operationMetrics": metrics}}


def file_action(
    kind: str,
    path: str = "a.parquet",
    *,
    size: int = 100,
    records: int | None = 10,
    deleted: int = 0,
    data: bool = True,
) -> Action:
    """An add, remove or cdc action."""
    action: Action = {"path": path, "size": size, "dataChange": data, "partitionValues": {}, "modificationTime": 1}
    if records is not None:
        action["stats"] = json.dumps({"numRecords": records, "minValues": {"numRecords": 3}})
    if deleted:
        action["deletionVector"] = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": deleted}
    return {kind: action}


def column(
    name: str,
    column_type: object = "long",
    *,
    nullable: bool = True,
    mapped: tuple[int, str] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Action:
    """A field of a schemaString; `mapped` is its id and physical name under column mapping."""
    described = dict(metadata or {})
    if mapped:
        described |= {"delta.columnMapping.id": mapped[0], "delta.columnMapping.physicalName": mapped[1]}
    return {"name": name, "type": column_type, "nullable": nullable, "metadata": described}


def schema_string(*columns: Action) -> str:
    """A schemaString of these fields."""
    return json.dumps({"type": "struct", "fields": list(columns)})


def metadata_action(schema: str, table_id: str = "table-1", **configuration: str) -> Action:
    """A metaData action."""
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": [],
            "configuration": configuration,
        }
    }


PROTOCOL: Action = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def change(version: int, *, rows: int = 10, size: int = 100, metadata: Metadata | None = None) -> Commit:
    """A commit that changes data, unless it has no rows."""
    return Commit(version, 1000 + version, "WRITE", changes_data=rows > 0, rows=rows, bytes=size, metadata=metadata)


def feed_metadata(
    schema: str, table_id: str = "table-1", *, feed: str = "true", row_tracking: str = "false"
) -> Metadata:
    """Metadata of a table with a change data feed."""
    configuration = {"delta.enableChangeDataFeed": feed, "delta.enableRowTracking": row_tracking}
    return Metadata(table_id, canonical(schema), configuration)


def plan_request(commits: Sequence[Commit], schema: str, needs: Needs, *, covered: int = 0) -> PlanRequest:
    """A request with wide limits for the commits after `covered`, the last of which is the tip."""
    tip = commits[-1].version if commits else covered
    limits = Limits(1000, 10**9, 10**9)
    return PlanRequest(covered, 1, tip, "table-1", tuple(commits), schema, needs, limits, target_rows=100)


def ranges(plan: Plan) -> list[tuple[int, int]]:
    """First and last version of each slice."""
    return [(planned.first, planned.last) for planned in plan.slices]
