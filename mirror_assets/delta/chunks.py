"""Cutting a large table, as of one version, into chunks of whole files that are loaded one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mirror_assets.delta.cut import Limits
from mirror_assets.delta.rows import BYTES_PER_ROW
from mirror_assets.delta.state import SourceState


@dataclass(frozen=True)
class DataFile:
    """A live file of a version; `rows` is None without statistics, and counts rows that deletion vectors hide."""

    path: str
    bytes: int
    rows: int | None

    @property
    def likely_rows(self) -> int:
        """The best guess at the number of rows."""
        return self.bytes // BYTES_PER_ROW if self.rows is None else self.rows


@dataclass(frozen=True)
class FileChunk:
    """The `number`-th of `of` chunks: files `first` to `end` - 1 of a version with `files`, in order of their paths."""

    number: int
    of: int
    first: int
    end: int
    files: int
    rows: int
    bytes: int

    def __str__(self) -> str:
        """`3 of 7`."""
        return f"{self.number} of {self.of}"


def is_small(state: SourceState, limits: Limits) -> bool:
    """Whether the whole table is loaded at once."""
    return state.likely_rows <= limits.max_rows and state.bytes <= limits.max_bytes


def cut_files(files: Sequence[DataFile], limits: Limits, chunks: int = 0, landed: int = 0) -> tuple[FileChunk, ...]:
    """The chunks of `files`, in their order, behind so many that hold the first `landed` of them.

    Each is as long as the limits allow; a file beyond a limit is a chunk of its own. A cut depends only on what comes
    after the cut before it, so whoever goes on behind any chunk cuts the same ones.
    """
    ends: list[int] = []
    rows = size = 0
    for index, file in enumerate(files[landed:], landed):
        fits = rows + file.likely_rows <= limits.max_rows and size + file.bytes <= limits.max_bytes
        if index > landed and not fits:
            ends.append(index)
            rows = size = 0
        rows, size = rows + file.likely_rows, size + file.bytes
    bounds = [landed, *ends, len(files)]
    return tuple(
        FileChunk(
            number=chunks + index + 1,
            of=chunks + len(bounds) - 1,
            first=first,
            end=end,
            files=len(files),
            rows=sum(file.likely_rows for file in files[first:end]),
            bytes=sum(file.bytes for file in files[first:end]),
        )
        for index, (first, end) in enumerate(pairwise(bounds))
    )
