"""What a staged slice is made from, as one digest: slices of one digest are the same rows in the same parts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version

from mirror_assets.mirroring.columns import recorded_columns, table_columns
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.planner import PlannedSlice


def plan_digest(work: TableWork, planned: PlannedSlice) -> str:
    """The digest of the planned slice, of every setting that an encoder heeds, and of the release that encodes.

    The plan is a pure function of the log and the settings, so all of it counts: key, table id, schema, commits, and
    which rows go to which part. Where it is staged (generation, first number, incarnation) is the footing's to say.
    """
    table = work.table
    made_from = {
        "release": version("mirror-assets"),
        "source": table.source,
        "changes": table.changes.value,
        "net": table.is_net,
        "keys": table.mirror_keys,
        "columns": [column.model_dump() for column in recorded_columns(table_columns(table, planned.schema))],
        "compression": table.files.compression.value,
        "target_rows": table.files.target_rows,
        "planned": asdict(planned),
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
