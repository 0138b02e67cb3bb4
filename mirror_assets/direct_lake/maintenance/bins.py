"""Which files OPTIMIZE and REORG put together: Delta's own rules, on the log's values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.table.values import LiveFile

_GIB, _TIB = 2**30, 2**40
_SMALLEST, _LARGEST = 128 * 2**20, _GIB
_FROM, _TO = 10 * _GIB, 10 * _TIB


@dataclass(frozen=True)
class FileSizes:
    """The settings of a session that runs OPTIMIZE, in bytes; the defaults are Delta's (reference `direct-lake` §5).

    Files below `min_bytes`, and those of whose rows more than `max_deleted` (a share) are hidden by a deletion vector,
    are put together into files of up to `max_bytes`.
    """

    min_bytes: int = _GIB
    max_bytes: int = _GIB
    max_deleted: float = 0.05

    def statements(self) -> tuple[str, ...]:
        """What a session must be told before OPTIMIZE; nothing where it is Delta's default."""
        default = FileSizes()
        settings = (
            ("minFileSize", self.min_bytes, default.min_bytes),
            ("maxFileSize", self.max_bytes, default.max_bytes),
            ("maxDeletedRowsRatio", self.max_deleted, default.max_deleted),
        )
        return tuple(
            f"SET spark.databricks.delta.optimize.{name} = {value}" for name, value, usual in settings if value != usual
        )


def sizes_for(table_bytes: int) -> FileSizes:
    """Sizes that fit a table: files of 128 MiB up to 10 GiB, from there on larger, of 1 GiB from 10 TiB on.

    That is Fabric's "adaptive target file size" (its page "Tune the size of Delta table data files", 2026-03-01), where
    files below half of the target are rewritten.
    """
    share = min(1.0, max(0.0, (table_bytes - _FROM) / (_TO - _FROM)))
    target = round(_SMALLEST + share * (_LARGEST - _SMALLEST))
    return FileSizes(target // 2, target)


@dataclass(frozen=True)
class Bin:
    """Files that are read together, and how many are written in their place."""

    files: tuple[LiveFile, ...]
    makes: int = 1


def compaction_bins(partition: Sequence[LiveFile], sizes: FileSizes) -> tuple[Bin, ...]:
    """What OPTIMIZE rewrites of a partition."""
    candidates = (file for file in partition if file.bytes < sizes.min_bytes or _has_many_hidden(file, sizes))
    return tuple(found for found in _packed(candidates, sizes.max_bytes) if len(found.files) > 1)


def purge_bins(files: Iterable[LiveFile], sizes: FileSizes) -> tuple[Bin, ...]:
    """What REORG TABLE … APPLY (PURGE) rewrites, given those files of a partition that it chooses."""
    return _packed(files, sizes.max_bytes)


def shown_rows(file: LiveFile) -> int | None:
    """Rows that no deletion vector hides; None where statistics don't tell."""
    return file.rows if file.rows is None or file.vector is None else file.rows - file.vector.rows


def _has_many_hidden(file: LiveFile, sizes: FileSizes) -> bool:
    """Whether OPTIMIZE takes the file for its hidden rows; without statistics, it does for any."""
    if file.vector is None:
        return False
    return file.rows is None or file.vector.rows > sizes.max_deleted * file.rows


def _packed(files: Iterable[LiveFile], target: int) -> tuple[Bin, ...]:
    bins: list[list[LiveFile]] = []
    filled = target + 1
    for file in sorted(files, key=lambda file: file.bytes):
        if filled + file.bytes > target:
            bins.append([])
            filled = 0
        bins[-1].append(file)
        filled += file.bytes
    return tuple(Bin(tuple(found), 1 if any(shown_rows(file) != 0 for file in found) else 0) for found in bins)


_CUBE = "ZCUBE_ID"
_GIB = 2**30
_SMALL_CUBE, _LARGEST_CUBE = 100 * _GIB, 150 * _GIB


def clustering_bins(files: Iterable[LiveFile], sizes: FileSizes) -> tuple[Bin, ...]:
    """What OPTIMIZE rewrites; how many files it makes of it is an estimate.

    Whether the clustering columns are those that a file was clustered by is not looked at: other ones are left alone.
    """
    cubes: defaultdict[str, list[LiveFile]] = defaultdict(list)
    for file in files:
        cubes[file.tags.get(_CUBE, "")].append(file)
    new = cubes.pop("", [])
    small = [cube for _, cube in sorted(cubes.items()) if _bytes(cube) < _SMALL_CUBE]
    if not new and len(small) < 2:
        return ()
    return tuple(_cube_bin(found, sizes) for found in _cubes([*new, *(file for cube in small for file in cube)]))


def _cubes(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    bins: list[list[LiveFile]] = [[]]
    for file in files:
        if bins[-1] and _bytes(bins[-1]) + file.bytes > _LARGEST_CUBE:
            bins.append([])
        bins[-1].append(file)
    return bins


def _cube_bin(files: Sequence[LiveFile], sizes: FileSizes) -> Bin:
    return Bin(tuple(files), max(1, _bytes(files) // sizes.max_bytes))


def _bytes(files: Iterable[LiveFile]) -> int:
    return sum(file.bytes for file in files)
