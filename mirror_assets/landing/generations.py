"""The history in `_mirror/` of the landed generations, by which each landed file can be recognised.

The newest generations are kept as they were committed; older ones in roll-ups, with what is still needed of each
(docs/landing-folder.md). `verified.json` says up to which generation all files were found in order.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.format import (
    Chunk,
    Count,
    Entry,
    Loading,
    Manifest,
    MarkerCounts,
    Receipt,
    Record,
    RecordedSlice,
    SliceKind,
    loading_of,
)
from mirror_assets.landing.names import HistoryRange, TableName


class CommittedFile(Record):
    """The facts by which a landing file is recognised."""

    number: Annotated[int, Field(ge=1)]
    etag: str
    bytes: Count
    sha256: str | None
    markers: MarkerCounts

    @classmethod
    def of(cls, entry: Entry) -> CommittedFile:
        """The file that the entry committed."""
        return cls(number=entry.number, etag=entry.etag, bytes=entry.bytes, sha256=entry.sha256, markers=entry.markers)


class Generation(Record):
    """A landed generation: where the next one continues, and the files that it landed."""

    incarnation: str
    epoch: Annotated[int, Field(ge=1)]
    generation: Annotated[int, Field(ge=1)]
    attempt: str
    source_table_id: str
    slice: RecordedSlice
    kind: SliceKind
    chunk: Chunk | None
    covered: Annotated[int, Field(ge=-1)]
    first_number: Annotated[int, Field(ge=1)]
    next_number: Annotated[int, Field(ge=1)]
    files: tuple[CommittedFile, ...]

    @classmethod
    def of(cls, manifest: Manifest) -> Generation:
        """The generation that the manifest committed."""
        return cls(
            incarnation=manifest.incarnation,
            epoch=manifest.epoch,
            generation=manifest.generation,
            attempt=manifest.attempt,
            source_table_id=manifest.source_table_id,
            slice=manifest.slice,
            kind=manifest.kind,
            chunk=manifest.chunk,
            covered=manifest.covered,
            first_number=manifest.first_number,
            next_number=manifest.next_number,
            files=tuple(map(CommittedFile.of, manifest.entries)),
        )

    @property
    def loading(self) -> Loading | None:
        """The snapshot that was still being loaded after it, or None."""
        return loading_of(self.slice, self.chunk)

    @property
    def receipt(self) -> Receipt:
        """The receipt in its files."""
        return Receipt.of(self)


class RollUp(Record):
    """Consecutive generations in one file; `before` is the SHA-256 of the roll-up before it.

    It is a pure function of the generations' own files, so all publishers write the same bytes.
    """

    format: Literal[1] = 1
    before: str | None
    generations: Annotated[tuple[Generation, ...], Field(min_length=1)]

    @property
    def range(self) -> HistoryRange:
        """The epoch and the generations that it keeps."""
        first, last = self.generations[0], self.generations[-1]
        return HistoryRange(first.epoch, first.generation, last.generation, is_roll_up=True)

    @property
    def next_number(self) -> int:
        """The number after those of its files."""
        return self.generations[-1].next_number


class VerifiedFile(Record):
    """A landing file that had the committed content, and the ETag it had then."""

    number: Annotated[int, Field(ge=1)]
    etag: str


class Verified(Record):
    """`verified.json`: all up to `generation` was found in order; `waiting` are the files not yet processed then.

    It says how things were when it was written; an outdated one costs work and does no harm.
    """

    format: Literal[1] = 1
    generation: Generation
    waiting: tuple[VerifiedFile, ...]


def range_path(table: TableName, kept: HistoryRange) -> str:
    """The path of the file that keeps these generations."""
    if kept.is_roll_up:
        return table.roll_up(kept.epoch, kept.first, kept.last)
    return table.history(kept.epoch, kept.first)


def content_hash(data: bytes) -> str:
    """Return the SHA-256 by which a roll-up refers to the one before it."""
    return hashlib.sha256(data).hexdigest()
