"""What OPTIMIZE or REORG rewrites of a table, by partition, and the table after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mirror_assets.delta.actions import Metadata
from mirror_assets.direct_lake.maintenance.bins import Bin, shown_rows
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, Effect, LeftOut, MaintenanceInput, StepKind
from mirror_assets.direct_lake.sql import PartitionKey, partition_predicate, table_at
from mirror_assets.direct_lake.table.values import LiveFile, Snapshot


@dataclass(frozen=True)
class Rewrite:
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


def by_partition(
    files: Iterable[LiveFile], metadata: Metadata, bins: Callable[[Sequence[LiveFile]], tuple[Bin, ...]]
) -> tuple[Rewrite, ...]:
    """What the rule makes of each partition, in order of the first file."""
    groups: defaultdict[PartitionKey, list[LiveFile]] = defaultdict(list)
    for file in files:
        groups[tuple(file.partition.get(column) for column in metadata.partition_columns)].append(file)
    return tuple(Rewrite(key, tuple(found), bins(found)) for key, found in groups.items())


def carried_out(
    live: Sequence[LiveFile], rewrites: Iterable[Rewrite], name: str, dropped: Mapping[str, int]
) -> tuple[LiveFile, ...]:
    """The table's files afterwards; new ones have sizes that are estimated, and paths made of `name`."""
    bins = [found for rewrite in rewrites for found in rewrite.bins]
    gone = {file.path for found in bins for file in found.files}
    kept = (file for file in live if file.path not in gone)
    made = (file for number, found in enumerate(bins) for file in _made(found, f"({name} {number})", dropped))
    return (*kept, *made)


def effect_of(before: Sequence[LiveFile], after: Sequence[LiveFile], *, is_exact: bool) -> Effect:
    """What the one became the other by."""
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


def _made(found: Bin, name: str, dropped: Mapping[str, int]) -> Iterator[LiveFile]:
    """As many files as the bin makes, alike in size."""
    size = sum(_shown_bytes(file, dropped) for file in found.files)
    rows = _all_rows(shown_rows(file) for file in found.files)
    for part in range(found.makes):
        some = None if rows is None else _part(rows, part, found.makes)
        path, partition = f"{name} {part}", found.files[0].partition
        yield LiveFile(path, _part(size, part, found.makes), some, 0, partition, None, {})


def _all_rows(rows: Iterable[int | None]) -> int | None:
    """The sum, or None when a part of it isn't known."""
    known = list(rows)
    return None if None in known else sum(row for row in known if row is not None)


def _part(amount: int, part: int, parts: int) -> int:
    return amount * (part + 1) // parts - amount * part // parts


def _shown_bytes(file: LiveFile, dropped: Mapping[str, int]) -> int:
    """The file's bytes without dropped columns, by the share of its rows that are shown."""
    kept = max(0, file.bytes - dropped.get(file.path, 0))
    shown = shown_rows(file)
    return kept if shown is None or not file.rows else kept * shown // file.rows


# Delta refuses OPTIMIZE and VACUUM of tables whose catalog commits, which is where they are maintained.
_MANAGED = frozenset({"catalogManaged", "catalogOwned-preview"})


@dataclass(frozen=True)
class PlannedTable:
    """A table's name in SQL, its live files, and what decides how they may be rewritten."""

    name: str
    files: tuple[LiveFile, ...]
    metadata: Metadata
    features: frozenset[str]

    @classmethod
    def of(cls, snapshot: Snapshot, wanted: MaintenanceInput) -> PlannedTable:
        """The table before the first step."""
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

    def where(self, chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite]) -> str:
        """The WHERE clause that leaves the rest alone; empty when there is no rest, or no partition to tell it by."""
        touched = [rewrite for rewrite in rewrites if rewrite.bins]
        if not self.metadata.partition_columns or len(chosen) == len(touched):
            return ""
        return f" WHERE {partition_predicate(self.metadata, [rewrite.key for rewrite in chosen])}"

    def unheeded(self, kind: StepKind, chosen: Sequence[Rewrite], rewrites: Sequence[Rewrite]) -> LeftOut | None:
        """Why there is no such step, where Delta 4.4 would not heed its WHERE clause and rewrite all partitions."""
        dotted = next((name for name in self.metadata.partition_columns if "." in name), None)
        if dotted is None or not self.where(chosen, rewrites):
            return None
        return LeftOut(kind, f"not worth it in all partitions, and Delta heeds no condition on `{dotted}`, for its dot")

    def rewritten(
        self, chosen: Sequence[Rewrite], kind: StepKind, wanted: MaintenanceInput
    ) -> tuple[PlannedTable, Effect]:
        """The table after these rewrites, and what they do to it.

        Fabric's runtime has rules of its own that are not published as source ("fast optimize", "adaptive target file
        size"), so there the numbers are estimates.
        """
        after = carried_out(self.files, chosen, kind.value, wanted.dropped)
        is_exact = wanted.dialect is Dialect.DELTA and not self.is_clustered
        return replace(self, files=after), effect_of(self.files, after, is_exact=is_exact)
