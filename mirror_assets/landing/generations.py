"""The history of landed generations in `_mirror/`, by which each landed file can be recognised.

The newest generations are stored as manifests, older ones in roll-ups (docs/landing-folder.md), so that the number of
files does not grow with a table's age. `verified.json` has the generation up to which all files passed the check
`file_continuity`.

Roll-ups need three rules (docs/decisions/0010). The newest generations are not rolled up: a lost manifest is restored
from the newest one. A roll-up exists before its generations' own files are deleted. A roll-up is deleted only when none
of its landing files exists any more. Generations and numbers decide, never age.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from mirror_assets.landing.errors import ManifestCorrupt
from mirror_assets.landing.format import CommittedFile, CommittedGeneration, Manifest, Record, decode
from mirror_assets.landing.names import HistoryRange, TableName, landing_number
from mirror_assets.landing.steps import Create, Delete, ListFolder, Read, Steps
from mirror_assets.zones import Content, PathExists

# A roll-up ends with each hundredth generation, or earlier if it has this many files: it is read whole.
GENERATIONS: Final = 100
FILES: Final = 10_000
# The newest generations that keep files of their own, by which checks of the newest changes find them.
KEPT: Final = 100
# The epoch's first generation also keeps its file: it shows how the mirror started.
_BEGINNING: Final = 1


class Generation(CommittedGeneration):
    """A landed generation with its files. The order of the fields is part of the format: roll-ups are compared."""

    files: tuple[CommittedFile, ...]

    @classmethod
    def of(cls, manifest: Manifest) -> Generation:
        """Return the generation that the manifest committed."""
        return cls.model_validate(manifest, from_attributes=True)


class RollUp(Record):
    """Consecutive generations in one file; `before` is the SHA-256 of the previous roll-up.

    It is a pure function of the generations' own files, so all publishers write the same bytes.
    """

    format: Literal[1] = 1
    before: str | None
    generations: Annotated[tuple[Generation, ...], Field(min_length=1)]

    @property
    def range(self) -> HistoryRange:
        """Its epoch, and its first and last generation."""
        first, last = self.generations[0], self.generations[-1]
        return HistoryRange(first.epoch, first.generation, last.generation, is_roll_up=True)

    @property
    def next_number(self) -> int:
        """The number after those of its files."""
        return self.generations[-1].next_number


class VerifiedFile(Record):
    """A landing file that had the committed content, and its ETag at that time."""

    number: Annotated[int, Field(ge=1)]
    etag: str


class Verified(Record):
    """`verified.json`: everything up to `generation` passed the check; `waiting` are the files not yet processed then.

    An outdated one costs work and does no harm.
    """

    format: Literal[1] = 1
    generation: Generation
    waiting: tuple[VerifiedFile, ...]


class EqualVersions(Record):
    """Source and mirror were equal at these versions of their Delta tables, and had this many rows.

    The ids of both show whether another table has the path by now.
    """

    source_id: str
    version: int
    mirror_id: str
    mirror_version: int
    rows: int


class Reconciled(Record):
    """`reconciled.json`: the newest comparison that found mirror and source equal.

    `compared` is a digest of what the result depends on beside the rows of both. `share` is the number of the share of
    columns that was compared, 0 for all; `unchanged` is how many shares were found equal at these versions. `whole_ms`
    is when all columns had been; None before that. An outdated record costs work and does no harm.
    """

    format: Literal[1] = 1
    compared: str
    equal: EqualVersions
    share: int
    unchanged: int
    whole_ms: int | None


def range_path(table: TableName, kept: HistoryRange) -> str:
    """Return the path of the file that has these generations."""
    if kept.is_roll_up:
        return table.roll_up(kept.epoch, kept.first, kept.last)
    return table.history(kept.epoch, kept.first)


def content_hash(data: bytes) -> str:
    """Return the SHA-256 by which a roll-up refers to the one before it."""
    return hashlib.sha256(data).hexdigest()


def roll_up(table: TableName, manifest: Manifest) -> Steps[None]:
    """Write a roll-up at each hundredth generation; all generations up to the manifest's must have landed.

    Any number of publishers may do so at once, and each may die at any request: the next one continues. Stops silently
    at a generation that is missing or unreadable, which the check `file_continuity` reports.
    """
    if manifest.generation % GENERATIONS:
        return
    listed = yield from list_history(table, manifest.epoch)
    newest = max((kept for kept in listed if kept.is_roll_up), key=lambda kept: kept.last, default=None)
    last, before = 0, None
    if newest is not None:
        content = yield from Read(range_path(table, newest))
        if content is None or _decoded(table, newest, content) is None:
            return
        last, before = newest.last, content_hash(content.data)
    while (following := (yield from _following(table, manifest, last, before))) is not None:
        data = following.model_dump_json().encode()
        if not (yield from _keep(range_path(table, following.range), data)):
            return
        last, before = following.range.last, content_hash(data)
    for kept in listed:
        if not kept.is_roll_up and kept.last <= last and kept.first != _BEGINNING:
            yield from Delete(range_path(table, kept))
    if newest is not None and last > newest.last:
        yield from _collect(table, manifest, [kept for kept in listed if kept.is_roll_up])


def list_history(table: TableName, epoch: int | None = None) -> Steps[list[HistoryRange]]:
    """List the history in order, of this epoch or of all. Late publishers may write files of ended epochs."""
    ranges = (HistoryRange.parse(info.name) for info in (yield from ListFolder(table.history_folder)))
    return sorted(kept for kept in ranges if kept is not None and epoch in (None, kept.epoch))


def landed_numbers(table: TableName) -> Steps[list[int]]:
    """Return the numbers of all landing files in the replicator's folders.

    The folders are listed in the order in which files move, so a file that moves meanwhile is listed at least once.
    """
    numbers = []
    for folder in table.file_folders:
        listed = yield from ListFolder(folder)
        numbers += [number for info in listed if (number := landing_number(info.name))]
    return numbers


def _following(table: TableName, manifest: Manifest, last: int, before: str | None) -> Steps[RollUp | None]:
    """Build the roll-up after generation `last`; None if it is not due yet, or a generation can't be read.

    Its end depends only on the generations themselves, so that all publishers write the same roll-ups.
    """
    gathered: list[Generation] = []
    files = 0
    for number in range(last + 1, manifest.generation - KEPT + 1):
        path = table.history(manifest.epoch, number)
        content = yield from Read(path)
        if content is None:
            return None  # another publisher has rolled it up meanwhile, or it was deleted
        try:
            gathered.append(Generation.of(decode(Manifest, path, content.data)))
        except ManifestCorrupt:
            return None
        files += len(gathered[-1].files)
        if number % GENERATIONS == 0 or files >= FILES:
            return RollUp(before=before, generations=tuple(gathered))
    return None


def _keep(path: str, data: bytes) -> Steps[bool]:
    """Write the roll-up; return whether the file has this content now, written by this or another publisher."""
    try:
        yield from Create(path, data)
    except PathExists:
        found = yield from Read(path)
        return found is not None and found.data == data
    return True


def _collect(table: TableName, manifest: Manifest, listed: Sequence[HistoryRange]) -> Steps[None]:
    """Delete roll-ups without an existing landing file, from the oldest on; `listed` is without the newest."""
    lowest = min((yield from landed_numbers(table)), default=manifest.next_number)
    for kept in listed:
        content = yield from Read(range_path(table, kept))
        if content is None:
            continue
        found = _decoded(table, kept, content)
        if found is None or found.next_number > lowest:
            return
        yield from Delete(range_path(table, kept))


def _decoded(table: TableName, kept: HistoryRange, content: Content) -> RollUp | None:
    try:
        found = decode(RollUp, range_path(table, kept), content.data)
    except ManifestCorrupt:
        return None
    return found if found.range == kept else None
