"""Which files OPTIMIZE and REORG put together: Delta's own rules, on the log's values.

Delta 4.4's OptimizeExecutor takes a partition's files that are small or have many hidden rows, in order of size, and
fills bins up to the target size; each bin becomes one file. OPTIMIZE leaves a bin of one file alone, REORG doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mirror_assets.direct_lake.maintenance.sizes import FileSizes
from mirror_assets.source.actions import LiveFile


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
