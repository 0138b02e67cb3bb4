"""What VACUUM deletes, by the rules of Spark with Delta 4.1 and newer (reference `direct-lake` §3.3).

It lists the folder, and deletes each file that is not hidden, was written before the retention began, and is named
neither by a live file nor by a tombstone that is younger than that. A tombstone that a checkpoint dropped protects
nothing, and change files are named by nobody: both go by age alone. So does a file, even a live one, that the log
spells otherwise than Hadoop lists it.

VACUUM LITE goes by the log alone, and is not predicted: it takes removed files and change files whose commits are old
enough however young the files themselves are (a copied table with in-commit timestamps), and in folders that are hidden
since a partition column was renamed.

Where a file has its deletion vector in the log itself, Spark's VACUUM (Delta 4.4) fails and deletes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mirror_assets.source.actions import LiveFile, Tombstone
from mirror_assets.source.replay import Snapshot
from mirror_assets.source.source_files import StoredFile
from mirror_assets.source.table_properties import Retention


def effective_retention(snapshot: Snapshot, retain_hours: float | None = None) -> float:
    """The seconds that count: the table's property, for `RETAIN n HOURS` counts only if it rounds to zero.

    Raises PropertyUnreadable.
    """
    if retain_hours is not None and math.floor(retain_hours + 0.5) == 0:
        return 0.0
    return Retention.of(snapshot.uri, snapshot.metadata).files.seconds


@dataclass(frozen=True)
class Expiring:
    """A file that VACUUM deletes when it is older than the retention; its clock began at `since_ms`, since 1970."""

    file: StoredFile
    since_ms: int


def expiring_files(snapshot: Snapshot, listing: Iterable[StoredFile]) -> tuple[Expiring, ...]:
    """The files of the listing that no live file keeps; the clock is that of the youngest tombstone."""
    live = set(_protected(snapshot.files))
    removed: dict[str, int] = {}
    for tombstone in snapshot.tombstones:
        for path in _protected([tombstone]):
            removed[path] = max(tombstone.deleted_ms, removed.get(path, 0))
    return tuple(
        Expiring(file, max(file.modified_ms, removed.get(file.path, 0))) for file in listing if file.path not in live
    )


def _protected(files: Iterable[LiveFile | Tombstone]) -> Iterator[str]:
    """What the actions keep; no deletion vector named by an absolute path: VACUUM takes that for another table's."""
    for file in files:
        if file.as_listed:
            yield file.path
        if file.vector is not None and file.vector.path is not None and file.vector.id.startswith("u"):
            yield file.vector.path
