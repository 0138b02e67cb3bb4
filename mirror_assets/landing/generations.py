"""The history of landed generations in `_mirror/`, by which each landed file can be recognised.

The newest generations are stored as manifests, older ones in roll-ups (docs/landing-folder.md). `verified.json` has the
generation up to which all files passed the check `file_continuity`.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from mirror_assets.landing.format import CommittedFile, CommittedGeneration, Manifest, Record
from mirror_assets.landing.names import HistoryRange, TableName


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
