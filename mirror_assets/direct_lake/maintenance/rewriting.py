"""OPTIMIZE and REORG TABLE … APPLY (PURGE), only where rewriting pays: Direct Lake loads again what they touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mirror_assets.direct_lake.maintenance.bins import Bin, clustering_bins, compaction_bins, purge_bins
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, LeftOut, MaintenanceInput, Step, StepKind, Worth
from mirror_assets.direct_lake.maintenance.rewrites import PlannedTable, Rewrite, by_partition
from mirror_assets.direct_lake.table.values import LiveFile


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
    return after, Step(StepKind.OPTIMIZE, statement, _why_optimize(chosen, rewrites, table), effect)


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


def _why_optimize(chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite], table: PlannedTable) -> str:
    files = sum(len(rewrite.rewritten) for rewrite in chosen)
    saved = sum(rewrite.saved for rewrite in chosen)
    where = f" in {len(chosen):,} of {len(rewrites):,} partitions" if table.metadata.partition_columns else ""
    why = f"{files:,} files{where} become {files - saved:,}"
    return f"{why}; a clustered table is clustered anew as long as it is below 100 GiB" if table.is_clustered else why


def plan_reorg(table: PlannedTable, wanted: MaintenanceInput) -> tuple[PlannedTable, Step | LeftOut]:
    """The table afterwards, and the statement; or the table as it is, and why there is none.

    Delta rewrites every file of the chosen partitions that has a deletion vector or a dropped column, be it ever so
    small. Of a liquid-clustered table it rewrites what clustering takes: nothing, where all such files are of one cube.
    """
    rule = clustering_bins if table.is_clustered else purge_bins

    def bins(partition: Sequence[LiveFile]) -> tuple[Bin, ...]:
        return rule([file for file in partition if _has_waste(file, wanted)], wanted.sizes)

    rewrites = by_partition(table.files, table.metadata, bins)
    chosen = [rewrite for rewrite in rewrites if _wasted_share(rewrite, wanted) > wanted.worth.wasted_share]
    if not chosen:
        return table, LeftOut(StepKind.REORG, _why_no_reorg(table, rewrites, wanted))
    if unheeded := table.unheeded(StepKind.REORG, chosen, rewrites):
        return table, unheeded
    after, effect = table.rewritten(chosen, StepKind.REORG, wanted)
    where = "" if table.is_clustered else table.where(chosen, rewrites)
    statement = f"REORG TABLE {table.name}{where} APPLY (PURGE)"
    return after, Step(StepKind.REORG, statement, _why_reorg(chosen, wanted), effect)


def _has_waste(file: LiveFile, wanted: MaintenanceInput) -> bool:
    return file.vector is not None or wanted.dropped.get(file.path, 0) > 0


def _waste(file: LiveFile, wanted: MaintenanceInput) -> float:
    """Bytes of dropped columns and, by their share, of hidden rows; all of a file that doesn't tell its rows."""
    dropped = wanted.dropped.get(file.path, 0)
    if file.vector is None:
        return dropped
    hidden = file.vector.rows / file.rows if file.rows else 1.0
    return min(file.bytes, dropped + hidden * (file.bytes - dropped))


def _wasted_share(rewrite: Rewrite, wanted: MaintenanceInput) -> float:
    return sum(_waste(file, wanted) for file in rewrite.rewritten) / rewrite.bytes if rewrite.bytes else 0.0


def _why_reorg(chosen: Sequence[Rewrite], wanted: MaintenanceInput) -> str:
    files = [file for rewrite in chosen for file in rewrite.rewritten]
    hidden = sum(file.vector.rows for file in files if file.vector is not None)
    dropped = sum(wanted.dropped.get(file.path, 0) for file in files)
    reasons = [f"{hidden:,} rows are hidden by deletion vectors"] if hidden else []
    reasons += [f"{dropped:,} bytes are dropped columns"] if dropped else []
    return f"in {len(files):,} files {' and '.join(reasons)}"


def _why_no_reorg(table: PlannedTable, rewrites: Sequence[Rewrite], wanted: MaintenanceInput) -> str:
    if not any(_has_waste(file, wanted) for file in table.files):
        return "no file has a deletion vector or, as far as footers were looked at, a dropped column"
    files = sum(len(rewrite.rewritten) for rewrite in rewrites)
    if not files:
        return "Delta leaves it to OPTIMIZE: all files with hidden rows are of one cube of a clustered table"
    return f"not worth it: {wanted.worth.wasted_share:.0%} or less of the {files:,} files with any is hidden or dropped"
