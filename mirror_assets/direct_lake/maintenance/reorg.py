"""REORG TABLE … APPLY (PURGE), where much of what it rewrites is hidden rows or dropped columns."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.direct_lake.maintenance.bins import Bin, purge_bins
from mirror_assets.direct_lake.maintenance.cubes import clustering_bins
from mirror_assets.direct_lake.maintenance.rewrites import Rewrite, by_partition
from mirror_assets.direct_lake.maintenance.table import PlannedTable
from mirror_assets.direct_lake.maintenance.values import LeftOut, MaintenanceInput, Step, StepKind
from mirror_assets.source.actions import LiveFile


def plan_reorg(table: PlannedTable, wanted: MaintenanceInput) -> tuple[PlannedTable, Step | LeftOut]:
    """The table afterwards, and the statement; or the table as it is, and why there is none.

    Delta rewrites every file of the chosen partitions that has a deletion vector or a dropped column, be it ever so
    small. Of a liquid-clustered table it rewrites what clustering takes: nothing, where all such files are of one cube.
    """
    rule = clustering_bins if table.is_clustered else purge_bins

    def bins(partition: Sequence[LiveFile]) -> tuple[Bin, ...]:
        return rule([file for file in partition if _has_waste(file, wanted)], wanted.sizes)

    rewrites = by_partition(table.files, table.metadata, bins)
    chosen = [rewrite for rewrite in rewrites if _share(rewrite, wanted) > wanted.worth.wasted_share]
    if not chosen:
        return table, LeftOut(StepKind.REORG, _why_not(table, rewrites, wanted))
    if unheeded := table.unheeded(StepKind.REORG, chosen, rewrites):
        return table, unheeded
    after, effect = table.rewritten(chosen, StepKind.REORG, wanted)
    where = "" if table.is_clustered else table.where(chosen, rewrites)
    statement = f"REORG TABLE {table.name}{where} APPLY (PURGE)"
    return after, Step(StepKind.REORG, statement, _why(chosen, wanted), effect)


def _has_waste(file: LiveFile, wanted: MaintenanceInput) -> bool:
    return file.vector is not None or wanted.dropped.get(file.path, 0) > 0


def _waste(file: LiveFile, wanted: MaintenanceInput) -> float:
    """Bytes of dropped columns and, by their share, of hidden rows; all of a file that doesn't tell its rows."""
    dropped = wanted.dropped.get(file.path, 0)
    if file.vector is None:
        return dropped
    hidden = file.vector.rows / file.rows if file.rows else 1.0
    return min(file.bytes, dropped + hidden * (file.bytes - dropped))


def _share(rewrite: Rewrite, wanted: MaintenanceInput) -> float:
    return sum(_waste(file, wanted) for file in rewrite.rewritten) / rewrite.bytes if rewrite.bytes else 0.0


def _why(chosen: Sequence[Rewrite], wanted: MaintenanceInput) -> str:
    files = [file for rewrite in chosen for file in rewrite.rewritten]
    hidden = sum(file.vector.rows for file in files if file.vector is not None)
    dropped = sum(wanted.dropped.get(file.path, 0) for file in files)
    reasons = [f"{hidden:,} rows are hidden by deletion vectors"] if hidden else []
    reasons += [f"{dropped:,} bytes are dropped columns"] if dropped else []
    return f"in {len(files):,} files {' and '.join(reasons)}"


def _why_not(table: PlannedTable, rewrites: Sequence[Rewrite], wanted: MaintenanceInput) -> str:
    if not any(_has_waste(file, wanted) for file in table.files):
        return "no file has a deletion vector or, as far as footers were looked at, a dropped column"
    files = sum(len(rewrite.rewritten) for rewrite in rewrites)
    if not files:
        return "Delta leaves it to OPTIMIZE: all files with hidden rows are of one cube of a clustered table"
    return f"not worth it: {wanted.worth.wasted_share:.0%} or less of the {files:,} files with any is hidden or dropped"
