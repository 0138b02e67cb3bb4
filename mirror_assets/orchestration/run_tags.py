"""Tags that say in a run's header, and in the list of runs, which tables and slices it works on."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from mirror_assets.landing.names import SliceKey, TableName

TABLE_TAG = "mirror/table"
COMMAND_TAG = "mirror/command"
FAILING_TAG = "mirror/failing"
SLICE_TAG = "mirror/slice"
VERSIONS_TAG = "mirror/versions"
_NAMED = 3


def tag_slices(instance: dg.DagsterInstance, run: dg.DagsterRun, table: TableName, keys: Sequence[SliceKey]) -> None:
    """Tag the run with the table, its slices in order, and their versions; each step of a run would do so anew."""
    if SLICE_TAG in run.tags or not keys:
        return
    first, last = keys[0], keys[-1]
    slices = str(first) if len(keys) == 1 else f"{first} ... {last} ({len(keys)} slices)"
    spanned = f"{first.first}" if first.first == last.last else f"{first.first} to {last.last}"
    instance.add_run_tags(run.run_id, {TABLE_TAG: str(table), SLICE_TAG: slices, VERSIONS_TAG: spanned})


def tag_tables(instance: dg.DagsterInstance, run_id: str, tables: Sequence[TableName]) -> None:
    """Tag a run of a job with the names of its tables, or with how many they are."""
    instance.add_run_tags(run_id, {TABLE_TAG: ", ".join(map(str, tables)) if len(tables) <= _NAMED else _many(tables)})


def tag_failing(instance: dg.DagsterInstance, run_id: str, tables: Sequence[TableName]) -> None:
    """Tag a run with the tables that fail: one that stays is no failed run; `none` once they are mended."""
    named = ", ".join(map(str, tables[:_NAMED])) or "none"
    instance.add_run_tags(run_id, {FAILING_TAG: named if len(tables) <= _NAMED else f"{_many(tables)}: {named}, …"})


def _many(tables: Sequence[TableName]) -> str:
    return f"{len(tables)} tables"
