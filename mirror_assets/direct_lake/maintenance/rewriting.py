"""OPTIMIZE and REORG TABLE … APPLY (PURGE), only where rewriting pays: Direct Lake loads again what they touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_assets.delta.actions import Metadata
from mirror_assets.direct_lake.maintenance.bins import Bin, clustering_bins, compaction_bins, purge_bins, shown_rows
from mirror_assets.direct_lake.maintenance.plan_values import (
    Dialect,
    Effect,
    LeftOut,
    MaintenanceInput,
    Step,
    StepKind,
    Worth,
)
from mirror_assets.direct_lake.sql import PartitionKey, partition_predicate, table_at
from mirror_assets.direct_lake.table.values import LiveFile, Snapshot

# Delta refuses OPTIMIZE and VACUUM of tables whose catalog commits, which is where they are maintained.
_MANAGED = frozenset({"catalogManaged", "catalogOwned-preview"})


@dataclass(frozen=True)
class PlannedTable:
    """A table between two steps of a plan: its name in SQL, and its live files as they are, or will be."""

    name: str
    files: tuple[LiveFile, ...]
    metadata: Metadata
    features: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, wanted: MaintenanceInput) -> PlannedTable:
        """Return the table before the first step."""
        name = wanted.table or table_at(snapshot.uri)
        return cls(name, snapshot.files, snapshot.metadata, snapshot.protocol.features)

    @property
    def is_clustered(self) -> bool:
        """Whether it is liquid-clustered; by which columns, or none any more, the log's files don't tell."""
        return "clustering" in self.features

    @property
    def is_managed(self) -> bool:
        """Whether its catalog maintains it, and nobody else may."""
        return bool(self.features & _MANAGED)


def plan_optimize(table: PlannedTable, wanted: MaintenanceInput) -> tuple[PlannedTable, Step | LeftOut]:
    """Return the table afterwards, and the statement; or the table as it is, and why there is none.

    Liquid-clustered tables take neither WHERE nor ZORDER. ZORDER is never planned: it rewrites all files each time.
    """
    rule = clustering_bins if table.is_clustered else compaction_bins
    rewrites = _by_partition(table, lambda files: rule(files, wanted.sizes))
    chosen = _worthwhile(rewrites, wanted.worth)
    saved = sum(rewrite.saved for rewrite in chosen)
    if not chosen:
        possible = sum(rewrite.saved for rewrite in rewrites)
        why_not = f"not worth it: there would be {possible:,} files less of {len(table.files):,}"
        return table, LeftOut(StepKind.OPTIMIZE, why_not)
    files = sum(len(rewrite.rewritten) for rewrite in chosen)
    where = f" in {len(chosen):,} of {len(rewrites):,} partitions" if table.metadata.partition_columns else ""
    clustered = "; a clustered table is clustered anew as long as it is below 100 GiB" if table.is_clustered else ""
    why = f"{files:,} files{where} become {files - saved:,}{clustered}"
    order = " VORDER" if wanted.dialect is Dialect.FABRIC else ""
    return _planned(table, wanted, _Choice(StepKind.OPTIMIZE, rewrites, chosen), ("OPTIMIZE", order), why)


def plan_reorg(table: PlannedTable, wanted: MaintenanceInput) -> tuple[PlannedTable, Step | LeftOut]:
    """Return the table afterwards, and the statement; or the table as it is, and why there is none.

    Delta rewrites every file of the chosen partitions that has a deletion vector or a dropped column, be it ever so
    small. Of a liquid-clustered table it rewrites what clustering takes: nothing, where all such files are of one cube.
    """
    rule = clustering_bins if table.is_clustered else purge_bins
    rewrites = _by_partition(
        table, lambda files: rule([file for file in files if _has_waste(file, wanted)], wanted.sizes)
    )
    chosen = [rewrite for rewrite in rewrites if _wasted_share(rewrite, wanted) > wanted.worth.wasted_share]
    if not chosen:
        return table, LeftOut(StepKind.REORG, _why_no_reorg(table, rewrites, wanted))
    files = [file for rewrite in chosen for file in rewrite.rewritten]
    hidden = sum(file.vector.rows for file in files if file.vector is not None)
    dropped = sum(wanted.dropped.get(file.path, 0) for file in files)
    reasons = [f"{hidden:,} rows are hidden by deletion vectors"] if hidden else []
    reasons += [f"{dropped:,} bytes are dropped columns"] if dropped else []
    why = f"in {len(files):,} files {' and '.join(reasons)}"
    choice = _Choice(StepKind.REORG, rewrites, chosen)
    return _planned(table, wanted, choice, ("REORG TABLE", " APPLY (PURGE)"), why)


@dataclass(frozen=True)
class _Rewrite:
    """One partition, and what is rewritten of it."""

    key: PartitionKey
    files: tuple[LiveFile, ...]
    bins: tuple[Bin, ...]

    @property
    def rewritten(self) -> tuple[LiveFile, ...]:
        """The files that go."""
        return tuple(file for found in self.bins for file in found.files)

    @property
    def saved(self) -> int:
        """By how many files there will be less."""
        return len(self.rewritten) - sum(found.makes for found in self.bins)

    @property
    def bytes(self) -> int:
        """Bytes of the files that go."""
        return sum(file.bytes for file in self.rewritten)


@dataclass(frozen=True)
class _Choice:
    """What a step could rewrite, and the partitions of which it does."""

    kind: StepKind
    rewrites: Sequence[_Rewrite]
    chosen: Sequence[_Rewrite]


def _by_partition(table: PlannedTable, bins: Callable[[Sequence[LiveFile]], tuple[Bin, ...]]) -> tuple[_Rewrite, ...]:
    """What the rule makes of each partition, in order of the first file."""
    groups: defaultdict[PartitionKey, list[LiveFile]] = defaultdict(list)
    for file in table.files:
        groups[tuple(file.partition.get(column) for column in table.metadata.partition_columns)].append(file)
    return tuple(_Rewrite(key, tuple(found), bins(found)) for key, found in groups.items())


def _worthwhile(rewrites: Sequence[_Rewrite], worth: Worth) -> list[_Rewrite]:
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


def _pays(rewrite: _Rewrite, worth: Worth) -> bool:
    files = len(rewrite.files)
    return files >= worth.min_files and rewrite.saved > 0 and rewrite.saved >= worth.saved_share * files


def _has_waste(file: LiveFile, wanted: MaintenanceInput) -> bool:
    return file.vector is not None or wanted.dropped.get(file.path, 0) > 0


def _wasted_share(rewrite: _Rewrite, wanted: MaintenanceInput) -> float:
    return sum(_waste(file, wanted) for file in rewrite.rewritten) / rewrite.bytes if rewrite.bytes else 0.0


def _waste(file: LiveFile, wanted: MaintenanceInput) -> float:
    """Bytes of dropped columns and, by their share, of hidden rows; all of a file that doesn't tell its rows."""
    dropped = wanted.dropped.get(file.path, 0)
    if file.vector is None:
        return dropped
    hidden = file.vector.rows / file.rows if file.rows else 1.0
    return min(file.bytes, dropped + hidden * (file.bytes - dropped))


def _why_no_reorg(table: PlannedTable, rewrites: Sequence[_Rewrite], wanted: MaintenanceInput) -> str:
    if not any(_has_waste(file, wanted) for file in table.files):
        return "no file has a deletion vector or, as far as footers were looked at, a dropped column"
    files = sum(len(rewrite.rewritten) for rewrite in rewrites)
    if not files:
        return "Delta leaves it to OPTIMIZE: all files with hidden rows are of one cube of a clustered table"
    return f"not worth it: {wanted.worth.wasted_share:.0%} or less of the {files:,} files with any is hidden or dropped"


def _planned(
    table: PlannedTable, wanted: MaintenanceInput, choice: _Choice, words: tuple[str, str], why: str
) -> tuple[PlannedTable, Step | LeftOut]:
    """The step, its statement made of the words before and after the table; none where Delta ignores its WHERE."""
    where, dotted = _where(table, choice), [name for name in table.metadata.partition_columns if "." in name]
    if where and dotted:  # Delta 4.4 would rewrite all partitions
        why_not = f"not worth it in all partitions, and Delta heeds no condition on `{dotted[0]}`, for its dot"
        return table, LeftOut(choice.kind, why_not)
    after = _carried_out(table.files, choice, wanted.dropped)
    # Fabric's runtime has rules of its own that are not published as source ("fast optimize", "adaptive target file
    # size"), so there the numbers are estimates.
    is_exact = wanted.dialect is Dialect.DELTA and not table.is_clustered
    statement = f"{words[0]} {table.name}{where}{words[1]}"
    return replace(table, files=after), Step(
        choice.kind, statement, why, _effect(table.files, after, is_exact=is_exact)
    )


def _where(table: PlannedTable, choice: _Choice) -> str:
    """The WHERE clause that leaves the rest alone; empty when there is no rest, or no partition to tell it by."""
    touched = [rewrite for rewrite in choice.rewrites if rewrite.bins]
    if not table.metadata.partition_columns or len(choice.chosen) == len(touched):
        return ""
    return f" WHERE {partition_predicate(table.metadata, [rewrite.key for rewrite in choice.chosen])}"


def _carried_out(live: Sequence[LiveFile], choice: _Choice, dropped: Mapping[str, int]) -> tuple[LiveFile, ...]:
    """The table's files afterwards; new ones have sizes that are estimated, and paths made of the step's name."""
    bins = [found for rewrite in choice.chosen for found in rewrite.bins]
    gone = {file.path for found in bins for file in found.files}
    kept = (file for file in live if file.path not in gone)
    made = (
        file for number, found in enumerate(bins) for file in _made(found, f"({choice.kind.value} {number})", dropped)
    )
    return (*kept, *made)


def _made(found: Bin, name: str, dropped: Mapping[str, int]) -> Iterator[LiveFile]:
    """As many files as the bin makes, alike in size."""
    size = sum(_shown_bytes(file, dropped) for file in found.files)
    rows = _all_rows(shown_rows(file) for file in found.files)
    for part in range(found.makes):
        some = None if rows is None else _part(rows, part, found.makes)
        path, partition = f"{name} {part}", found.files[0].partition
        yield LiveFile(path, _part(size, part, found.makes), some, 0, partition, None, {})


def _part(amount: int, part: int, parts: int) -> int:
    return amount * (part + 1) // parts - amount * part // parts


def _shown_bytes(file: LiveFile, dropped: Mapping[str, int]) -> int:
    """The file's bytes without dropped columns, by the share of its rows that are shown."""
    kept = max(0, file.bytes - dropped.get(file.path, 0))
    shown = shown_rows(file)
    return kept if shown is None or not file.rows else kept * shown // file.rows


def _all_rows(rows: Iterable[int | None]) -> int | None:
    """The sum, or None when a part of it isn't known."""
    known = list(rows)
    return None if None in known else sum(row for row in known if row is not None)


def _effect(before: Sequence[LiveFile], after: Sequence[LiveFile], *, is_exact: bool) -> Effect:
    there = {file.path for file in before}
    new = [file for file in after if file.path not in there]
    return Effect(
        files_before=len(before),
        files_after=len(after),
        bytes_before=sum(file.bytes for file in before),
        bytes_after=sum(file.bytes for file in after),
        rows_to_load=_all_rows(file.rows for file in new),
        bytes_to_load=sum(file.bytes for file in new),
        is_exact=is_exact,
    )
