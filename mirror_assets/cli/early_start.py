"""Starts Spark in the background while a command loads its modules: both take seconds, in different processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mirror_assets.errors import MirrorError

if TYPE_CHECKING:
    from mirror_assets.pipeline.context import TableContext

RowsOf: TypeAlias = "Callable[[TableContext], int | None]"
# This many rows take a second or two, even with a cold JVM.
_BRIEF_ROWS = 200_000
# To plan more tables takes longer than it helps.
_FEW_TABLES = 50


def start_spark_early(path: Path | None, names: Sequence[str], rows_of: RowsOf | None) -> None:
    """Start Spark in the background if a table has rows to read; always for a resident run, which has no `rows_of`.

    Errors are ignored: the command itself encounters and reports them.
    """
    # PySpark's modules import each other: if two threads import them at once, each sees half-initialized modules.
    import mirror_assets.composition
    import mirror_assets.encode.session
    import mirror_assets.pipeline.plan  # noqa: F401

    threading.Thread(target=_start, args=(path, names, rows_of), name="spark-start", daemon=True).start()


def waiting_rows(
    table: TableContext, first: str | None = None, last: str | None = None, *, clip: bool = False
) -> int | None:
    """Return about the rows of the slices that `run` would mirror between two points; None if there are none."""
    from mirror_assets.pipeline.plan import SLICES_AHEAD, plan_table
    from mirror_assets.source.ranges import parse_range

    plan = plan_table(table, requested=parse_range(first, last, clip=clip), at_most=SLICES_AHEAD)
    return plan.rows + plan.later_rows(SLICES_AHEAD) if plan.slices else None


def source_rows(table: TableContext) -> int:
    """Return the rows of the source's newest version, as its log counts or estimates them."""
    return table.log.state().likely_rows


def _start(path: Path | None, names: Sequence[str], rows_of: RowsOf | None) -> None:
    from mirror_assets.composition import compose, spark_settings_of
    from mirror_assets.config.load import load_config

    with suppress(Exception):
        config = load_config(path)
        if rows_of is None or len(config.chosen(names)) > _FEW_TABLES:
            spark_settings_of(config).open("the resource", is_brief=False)
            return
        rows = list[int]()
        for table in compose(config).tables(names):
            with suppress(MirrorError):
                rows += [found] if (found := rows_of(table)) is not None else []
        if rows:
            spark_settings_of(config).open("the resource", is_brief=sum(rows) <= _BRIEF_ROWS)
