"""Which bytes the columns that a model uses take, and those that it never uses (seed: unnecessary columns)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.footers.mapping import ColumnNames
from mirror_assets.direct_lake.layout.columns import ColumnLayout, percent
from mirror_assets.direct_lake.questions.answer import Answer


@dataclass(frozen=True)
class ColumnBytes:
    """A column of the table over all files: bytes compressed, as they are read, and uncompressed.

    Partition columns take none, unless their writer puts them into files, too, as Spark does with column mapping.
    """

    column: str
    compressed: int
    uncompressed: int


@dataclass(frozen=True)
class Loading:
    """The columns that are used, and the others, the largest first."""

    used: tuple[ColumnBytes, ...]
    unused: tuple[ColumnBytes, ...]

    @property
    def used_bytes(self) -> int:
        """Compressed bytes that loading the columns reads; row groups are loaded whole, hidden rows included."""
        return sum(column.compressed for column in self.used)

    @property
    def unused_bytes(self) -> int:
        """Compressed bytes that are stored, and maintained, for nothing."""
        return sum(column.compressed for column in self.unused)

    def answers(self) -> tuple[Answer, ...]:
        """One row for what is loaded, one per column that is not used."""
        whole = self.used_bytes + self.unused_bytes
        share = percent(self.used_bytes, whole)
        loaded = f"{len(self.used)} columns load {self.used_bytes:,} bytes, {share:.0f} % of all"
        figures = {"used_bytes": self.used_bytes, "unused_bytes": self.unused_bytes, "used_bytes_share": share}
        names = ", ".join(column.column for column in self.used)
        return (
            Answer("bytes to load", names, loaded, figures=figures),
            *(
                Answer(
                    "unused columns",
                    column.column,
                    f"{column.compressed:,} bytes, {percent(column.compressed, whole):.0f} % of all, are never loaded",
                    "drop it if nobody else reads it",
                    {"bytes": column.compressed},
                )
                for column in self.unused
            ),
        )


def loading(columns: Sequence[ColumnLayout], names: ColumnNames, used: Sequence[str]) -> Loading:
    """What loading the used columns takes; `columns` are those of a report. Raises ColumnUnknown."""
    names.require(used)
    sizes = {field.name: ColumnBytes(field.name, 0, 0) for field in names.schema.fields}
    for column in columns:
        if column.name is not None:
            so_far, parquet = sizes[column.name], column.parquet
            compressed, uncompressed = (
                so_far.compressed + parquet.compressed,
                so_far.uncompressed + parquet.uncompressed,
            )
            sizes[column.name] = ColumnBytes(column.name, compressed, uncompressed)
    ordered = sorted(sizes.values(), key=lambda size: -size.compressed)
    return Loading(
        used=tuple(size for size in ordered if size.column in used),
        unused=tuple(size for size in ordered if size.column not in used),
    )
