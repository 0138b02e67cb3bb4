"""OPTIMIZE, only where it pays: each partition that it touches is one that Direct Lake loads again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mirror_assets.direct_lake.maintenance.bins import Bin, compaction_bins
from mirror_assets.direct_lake.maintenance.cubes import clustering_bins
from mirror_assets.direct_lake.maintenance.rewrites import Rewrite, by_partition
from mirror_assets.direct_lake.maintenance.table import PlannedTable
from mirror_assets.direct_lake.maintenance.values import Dialect, LeftOut, MaintenanceInput, Step, StepKind, Worth
from mirror_assets.source.actions import LiveFile


def plan_optimize(table: PlannedTable, wanted: MaintenanceInput) -> tuple[PlannedTable, Step | LeftOut]:
    """The table afterwards, and the statement; or the table as it is, and why there is none.

    Liquid-clustered tables take neither WHERE nor ZORDER. ZORDER is never planned: it rewrites all files each time.
    """
    rewrites = by_partition(table.files, table.metadata, _rule(table, wanted))
    chosen = worthwhile(rewrites, wanted.worth)
    if not chosen:
        saved = sum(rewrite.saved for rewrite in rewrites)
        return table, LeftOut(
            StepKind.OPTIMIZE, f"not worth it: there would be {saved:,} files less of {len(table.files):,}"
        )
    if unheeded := table.unheeded(StepKind.OPTIMIZE, chosen, rewrites):
        return table, unheeded
    after, effect = table.rewritten(chosen, StepKind.OPTIMIZE, wanted)
    order = " VORDER" if wanted.dialect is Dialect.FABRIC else ""
    statement = f"OPTIMIZE {table.name}{table.where(chosen, rewrites)}{order}"
    return after, Step(StepKind.OPTIMIZE, statement, _why(chosen, rewrites, table), effect)


def worthwhile(rewrites: Sequence[Rewrite], worth: Worth) -> list[Rewrite]:
    """The partitions that pay; then, if the table has too many files still, those where most files go per byte."""
    chosen = {rewrite.key for rewrite in rewrites if _pays(rewrite, worth)}
    files = sum(len(rewrite.files) for rewrite in rewrites)
    files -= sum(rewrite.saved for rewrite in rewrites if rewrite.key in chosen)
    rest = (rewrite for rewrite in rewrites if rewrite.key not in chosen and rewrite.saved > 0)
    for rewrite in sorted(rest, key=lambda rewrite: rewrite.saved / (rewrite.bytes + 1), reverse=True):
        if worth.max_files is None or files <= worth.max_files:
            break
        chosen.add(rewrite.key)
        files -= rewrite.saved
    return [rewrite for rewrite in rewrites if rewrite.key in chosen]


def _rule(table: PlannedTable, wanted: MaintenanceInput) -> Callable[[Sequence[LiveFile]], tuple[Bin, ...]]:
    return partial(clustering_bins if table.is_clustered else compaction_bins, sizes=wanted.sizes)


def _pays(rewrite: Rewrite, worth: Worth) -> bool:
    files = len(rewrite.files)
    return files >= worth.min_files and rewrite.saved > 0 and rewrite.saved >= worth.saved_share * files


def _why(chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite], table: PlannedTable) -> str:
    files = sum(len(rewrite.rewritten) for rewrite in chosen)
    saved = sum(rewrite.saved for rewrite in chosen)
    where = f" in {len(chosen):,} of {len(rewrites):,} partitions" if table.metadata.partition_columns else ""
    why = f"{files:,} files{where} become {files - saved:,}"
    return f"{why}; a clustered table is clustered anew as long as it is below 100 GiB" if table.is_clustered else why
