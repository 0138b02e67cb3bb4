"""What OPTIMIZE rewrites of a liquid-clustered table: Delta 4.4's rule, by the tags in the log.

Files written since the last OPTIMIZE, and those of cubes that are smaller than 100 GiB, are clustered anew together; so
as long as all of a table is one such cube, each OPTIMIZE with anything new rewrites the whole table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mirror_assets.direct_lake.maintenance.bins import Bin
from mirror_assets.direct_lake.maintenance.sizes import FileSizes
from mirror_assets.source.actions import LiveFile

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
    return tuple(_bin(found, sizes) for found in _packed([*new, *(file for cube in small for file in cube)]))


def _packed(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    bins: list[list[LiveFile]] = [[]]
    for file in files:
        if bins[-1] and _bytes(bins[-1]) + file.bytes > _LARGEST_CUBE:
            bins.append([])
        bins[-1].append(file)
    return bins


def _bin(files: Sequence[LiveFile], sizes: FileSizes) -> Bin:
    return Bin(tuple(files), max(1, _bytes(files) // sizes.max_bytes))


def _bytes(files: Iterable[LiveFile]) -> int:
    return sum(file.bytes for file in files)
