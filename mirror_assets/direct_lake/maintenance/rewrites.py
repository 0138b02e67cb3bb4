"""Files that a statement rewrites, by partition, and what that does to the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.maintenance.bins import Bin, shown_rows
from mirror_assets.direct_lake.maintenance.predicate import PartitionKey
from mirror_assets.direct_lake.maintenance.values import Effect
from mirror_assets.source.actions import LiveFile, Metadata


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
