"""Which files OPTIMIZE and REORG put together: Delta's own rules, on the log's values.

Delta 4.4's OptimizeExecutor takes a partition's files that are small or have many hidden rows, in order of size, and
fills bins up to the target size; each bin becomes one file. OPTIMIZE leaves a bin of one file alone, REORG doesn't.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.table.values import LiveFile

_GIB, _TIB = 2**30, 2**40
_SMALLEST, _LARGEST = 128 * 2**20, _GIB
_FROM, _TO = 10 * _GIB, 10 * _TIB
_MAX_DELETED = 0.05
_CUBE = "ZCUBE_ID"
_SMALL_CUBE, _LARGEST_CUBE = 100 * _GIB, 150 * _GIB


@dataclass(frozen=True)
class FileSizes:
    """The settings of a session that runs OPTIMIZE, in bytes; the defaults are Delta's (reference `direct-lake` §5).

    Files below `min_bytes`, and those of whose rows more than `max_deleted` (a share) are hidden by a deletion vector,
    are put together into files of up to `max_bytes`.
    """

    min_bytes: int = _GIB
    max_bytes: int = _GIB
    max_deleted: float = _MAX_DELETED

    def settings(self) -> dict[str, str]:
        """Return the Spark settings that a session needs before OPTIMIZE, where they are not Delta's defaults."""
        wanted = {"minFileSize": self.min_bytes, "maxFileSize": self.max_bytes, "maxDeletedRowsRatio": self.max_deleted}
        usual = (_GIB, _GIB, _MAX_DELETED)
        return {
            f"spark.databricks.delta.optimize.{name}": str(value)
            for (name, value), default in zip(wanted.items(), usual, strict=True)
            if value != default
        }

    def statements(self) -> tuple[str, ...]:
        """Return the same settings as SQL."""
        return tuple(f"SET {name} = {value}" for name, value in self.settings().items())


def sizes_for(table_bytes: int) -> FileSizes:
    """Return sizes that fit a table: files of 128 MiB up to 10 GiB, from there on larger, of 1 GiB from 10 TiB on.

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
    """Return what OPTIMIZE rewrites of a partition; it leaves a bin of one file alone."""
    candidates = [file for file in partition if file.bytes < sizes.min_bytes or _has_many_hidden(file, sizes)]
    return tuple(found for found in purge_bins(candidates, sizes) if len(found.files) > 1)


def _has_many_hidden(file: LiveFile, sizes: FileSizes) -> bool:
    """Whether OPTIMIZE takes the file for its hidden rows; without statistics, it does for any."""
    if file.vector is None:
        return False
    return file.rows is None or file.vector.rows > sizes.max_deleted * file.rows


def purge_bins(files: Iterable[LiveFile], sizes: FileSizes) -> tuple[Bin, ...]:
    """Return what REORG TABLE … APPLY (PURGE) rewrites, given those files of a partition that it chooses."""
    bins = _filled(sorted(files, key=lambda file: file.bytes), sizes.max_bytes)
    return tuple(Bin(tuple(found), 1 if any(shown_rows(file) != 0 for file in found) else 0) for found in bins)


def shown_rows(file: LiveFile) -> int | None:
    """Return the rows that no deletion vector hides; None where statistics don't tell."""
    return file.rows if file.rows is None or file.vector is None else file.rows - file.vector.rows


def clustering_bins(files: Iterable[LiveFile], sizes: FileSizes) -> tuple[Bin, ...]:
    """Return what OPTIMIZE rewrites of a liquid-clustered table; how many files it makes of it is an estimate.

    Files written since the last OPTIMIZE, and those of cubes that are smaller than 100 GiB, are clustered anew
    together; so as long as all of a table is one such cube, each OPTIMIZE with anything new rewrites the whole table.
    Cubes are told by the tags in the log. Whether a file was clustered by today's columns is not compared: OPTIMIZE
    leaves files that were clustered by others alone.
    """
    cubes: defaultdict[str, list[LiveFile]] = defaultdict(list)
    for file in files:
        cubes[file.tags.get(_CUBE, "")].append(file)
    new = cubes.pop("", [])
    small = [cube for _, cube in sorted(cubes.items()) if _bytes(cube) < _SMALL_CUBE]
    if not new and len(small) < 2:
        return ()
    bins = _filled([*new, *(file for cube in small for file in cube)], _LARGEST_CUBE)
    return tuple(Bin(tuple(found), max(1, _bytes(found) // sizes.max_bytes)) for found in bins)


def _filled(files: Iterable[LiveFile], most_bytes: int) -> list[list[LiveFile]]:
    """The files in bins, each filled up to so many bytes before the next."""
    bins: list[list[LiveFile]] = []
    filled = most_bytes + 1
    for file in files:
        if filled + file.bytes > most_bytes:
            bins.append([])
            filled = 0
        bins[-1].append(file)
        filled += file.bytes
    return bins


def _bytes(files: Iterable[LiveFile]) -> int:
    return sum(file.bytes for file in files)
