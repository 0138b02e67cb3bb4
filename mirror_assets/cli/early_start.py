"""Starts Spark in the background while a command loads Dagster: both take seconds, in different processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.errors import MirrorError

if TYPE_CHECKING:
    from mirror_assets.source.ranges import Range

# This many rows land in a second or two, even with a cold JVM.
_BRIEF_ROWS = 200_000
# To plan more tables takes longer than it helps.
_FEW_TABLES = 50
_OWNER = "the resource"


def start_spark_early(path: Path | None, names: Sequence[str], requested: Callable[[], Range] | None) -> None:
    """Start Spark in the background if a slice of the range waits; always for a resident run, which has no range.

    Errors are ignored: the command itself encounters and reports them.
    """
    # PySpark's modules import each other: if two threads import them at once, each sees half-initialized modules.
    import mirror_assets.composition
    import mirror_assets.encode.session
    import mirror_assets.pipeline.plan  # noqa: F401

    threading.Thread(target=_start, args=(path, names, requested), name="spark-start", daemon=True).start()


def _start(path: Path | None, names: Sequence[str], requested: Callable[[], Range] | None) -> None:
    from mirror_assets.composition import Project, SparkSettings
    from mirror_assets.config import load_config
    from mirror_assets.pipeline.plan import plan_table

    with suppress(Exception):
        config = load_config(path)
        if requested is None or len(config.chosen(names)) > _FEW_TABLES:
            SparkSettings.of(config).open(_OWNER, is_brief=False)
            return
        commits, rows = requested(), list[int]()
        for table in Project.of(config).tables(names):
            with suppress(MirrorError):
                rows += [planned.rows for planned in plan_table(table, requested=commits).slices]
        if rows:
            SparkSettings.of(config).open(_OWNER, is_brief=sum(rows) <= _BRIEF_ROWS)
