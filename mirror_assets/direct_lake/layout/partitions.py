"""Files per partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mirror_assets.source.actions import LiveFile


@dataclass(frozen=True)
class PartitionLayout:
    """One partition: values by the partition columns' names, in their order; `rows` stored, None when not known."""

    values: tuple[tuple[str, str | None], ...]
    files: int
    bytes: int
    rows: int | None

    def __str__(self) -> str:
        """Its values as a folder has them."""
        return "/".join(f"{name}={'null' if value is None else value}" for name, value in self.values)


@dataclass(frozen=True)
class Partitions:
    """All partitions of a table, by their values; one without columns for a table that has none."""

    columns: tuple[str, ...]
    each: tuple[PartitionLayout, ...]

    @property
    def skew(self) -> float | None:
        """How many times the median partition's bytes the largest has; None without partitions."""
        sizes = [one.bytes for one in self.each]
        middle = median(sizes) if self.columns and sizes else 0
        return max(sizes) / middle if middle else None


def partitions(files: Sequence[LiveFile], columns: Sequence[str]) -> Partitions:
    """The files by their values of the table's partition columns."""
    grouped: defaultdict[tuple[tuple[str, str | None], ...], list[LiveFile]] = defaultdict(list)
    for file in files:
        grouped[tuple((name, file.partition.get(name)) for name in columns)].append(file)
    ordered = sorted(grouped.items(), key=lambda item: [(value is not None, value or "") for _, value in item[0]])
    return Partitions(tuple(columns), tuple(_partition(values, those) for values, those in ordered))


def _partition(values: tuple[tuple[str, str | None], ...], files: Sequence[LiveFile]) -> PartitionLayout:
    rows = [file.rows for file in files if file.rows is not None]
    return PartitionLayout(
        values=values,
        files=len(files),
        bytes=sum(file.bytes for file in files),
        rows=sum(rows) if len(rows) == len(files) else None,
    )
