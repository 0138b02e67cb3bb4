"""Starts Spark in the background while a command still loads Dagster: both take seconds, in different processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.errors import MirrorError

if TYPE_CHECKING:
    from mirror_assets.pipeline.context import TableContext
    from mirror_assets.source.planner import PlannedSlice
    from mirror_assets.source.ranges import Range

# This many rows land in a second or two, even with a cold JVM.
_BRIEF_ROWS = 200_000
# To plan more tables takes longer than it helps.
_FEW_TABLES = 50
_OWNER = "the resource"


def start_spark_early(path: Path | None, names: Sequence[str], requested: Callable[[], Range] | None) -> None:
    """Start Spark in the background if a slice of the range waits; a resident run, which has no range, always does.

    Errors are left to the command itself, which meets them again and reports them.
    """
    # Modules of PySpark import each other: two threads that import them at the same time each see a half of some.
    import mirror_assets.composition
    import mirror_assets.encode.session
    import mirror_assets.pipeline.plan  # noqa: F401

    threading.Thread(target=_start, args=(path, names, requested), name="spark-start", daemon=True).start()


def _start(path: Path | None, names: Sequence[str], requested: Callable[[], Range] | None) -> None:
    from mirror_assets.composition import Project, SparkSettings
    from mirror_assets.config import load_config

    with suppress(Exception):
        config = load_config(path)
        if requested is None:
            SparkSettings.of(config).open(_OWNER, is_brief=False)
            return
        tables = Project.of(config).tables(names)
        rows = _waiting_rows(tables, requested()) if len(tables) <= _FEW_TABLES else _BRIEF_ROWS + 1
        if rows is not None:
            SparkSettings.of(config).open(_OWNER, is_brief=rows <= _BRIEF_ROWS)


def _waiting_rows(tables: Sequence[TableContext], requested: Range) -> int | None:
    """Return the rows of the slices that wait; None if no slice waits."""
    found = [planned.rows for table in tables for planned in _waiting(table, requested)]
    return sum(found) if found else None


def _waiting(table: TableContext, requested: Range) -> Sequence[PlannedSlice]:
    from mirror_assets.pipeline.plan import plan_table

    with suppress(MirrorError):
        return plan_table(table, requested=requested).slices
    return ()
