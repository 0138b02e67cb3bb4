"""The control files that we write into a landing zone, as values (docs/landing-folder.md).

All of them are read back as untrusted input: sizes are limited, unknown fields refused, types checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, TypeVar

import pydantic
from pydantic import Field

from mirror_assets.landing.errors import ManifestCorrupt, NameRefused
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, part_place
from mirror_assets.storage import Content, PathMissing, Store

RECEIPT_KEY = "mirror_assets"
_LIMIT = 64 << 20

Count = Annotated[int, Field(ge=0)]


def _slice_text(text: str) -> str:
    try:
        return str(SliceKey.parse(text))
    except NameRefused as error:
        raise ValueError(error.what) from error


def _part_name(name: str) -> str:
    if part_place(name) is None:
        raise ValueError(f"{name!r} is no part's name")
    return name


PartName = Annotated[str, pydantic.AfterValidator(_part_name)]
SliceText = Annotated[str, pydantic.AfterValidator(_slice_text)]


class SliceKind(str, Enum):
    """What a slice carries."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    """A change per key and commit."""
    NET = "net"
    """One net change per key."""
    APPENDS = "appends"
    """New rows only."""
    START = "start"
    """The columns alone: the file of no rows with which a life begins that has nothing to land yet."""

    @property
    def has_markers(self) -> bool:
        """Whether its rows say what they do; else all are inserts, without a marker column."""
        return self in (SliceKind.CHANGES, SliceKind.NET)


class Record(pydantic.BaseModel):
    """The base of all control files: values never change, unknown fields are refused, types are not converted."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Chunk(Record):
    """The `number`-th of `of` chunks of a snapshot: the version's files `first` to `end` - 1, in order of their paths.

    It tells where it ends, so that the next one begins there, whatever the settings make of the rest.
    """

    number: Annotated[int, Field(ge=1)]
    of: Annotated[int, Field(ge=1)]
    first: Count
    end: Annotated[int, Field(ge=1)]

    @property
    def is_last(self) -> bool:
        """Whether the snapshot is whole with it."""
        return self.number == self.of

    def __str__(self) -> str:
        """`3 of 7`."""
        return f"{self.number} of {self.of}"


@dataclass(frozen=True)
class Loading:
    """A snapshot slice of which chunks are left, and the newest of those before them."""

    key: SliceKey
    chunk: Chunk

    def __str__(self) -> str:
        """In words."""
        return f"loading: {self.chunk} chunks of version {self.key.last}"


def is_next(key: SliceKey, chunk: Chunk | None, loading: Loading | None) -> bool:
    """Whether the slice, or this chunk of it, begins where a snapshot that is being loaded goes on.

    Where none is, that is any slice without chunks, or with its first.
    """
    if loading is None:
        return chunk is None or (chunk.number, chunk.first) == (1, 0)
    after = (loading.chunk.number + 1, loading.chunk.end)
    return key == loading.key and chunk is not None and (chunk.number, chunk.first) == after


class Column(Record):
    """One landed column: its name and its landing type as Spark spells it (`bigint`, `decimal(10,2)`)."""

    name: str
    type: str


class MarkerCounts(Record):
    """Rows of a file by row marker; rows without the marker column count as inserts."""

    inserts: Count = 0
    updates: Count = 0
    deletes: Count = 0
    upserts: Count = 0

    @property
    def total(self) -> int:
        """All rows."""
        return self.inserts + self.updates + self.deletes + self.upserts

    def __add__(self, other: MarkerCounts) -> MarkerCounts:
        """Sum of both, by marker."""
        return MarkerCounts(
            inserts=self.inserts + other.inserts,
            updates=self.updates + other.updates,
            deletes=self.deletes + other.deletes,
            upserts=self.upserts + other.upserts,
        )


class ChangeCounts(Record):
    """Rows read from the change feed by `_change_type`; a snapshot's rows count as inserts."""

    insert: Count = 0
    update_preimage: Count = 0
    update_postimage: Count = 0
    delete: Count = 0

    @property
    def total(self) -> int:
        """All rows read."""
        return self.insert + self.update_preimage + self.update_postimage + self.delete


class StagedPart(Record):
    """One staged part, read back after it was written; no SHA-256 where its bytes were never on this machine.

    All its rows are of the commits `first_version` to `last_version`, where that is known.
    """

    name: PartName
    etag: str
    bytes: Count
    sha256: str | None
    markers: MarkerCounts
    first_version: int | None = None
    last_version: int | None = None

    @property
    def version(self) -> int | None:
        """The commit that all its rows are of, or None where there are several, or it is not known."""
        return self.first_version if self.first_version == self.last_version else None


class Verdict(Record):
    """What a blocking check said of exactly these files."""

    check: str
    passed: bool
    etags: tuple[str, ...]
    message: str = ""


class Receipt(Record):
    """What every landing file says of itself in its Parquet key-value metadata (docs/landing-folder.md)."""

    format: Literal[1] = 1
    incarnation: str
    source_table_id: str
    slice: SliceText
    generation: int
    attempt: str
    first_number: int

    @classmethod
    def of(cls, generation: Record) -> Receipt:
        """Return the receipt in the files of a committed generation, as its manifest or its history has it."""
        return cls.model_validate({name: getattr(generation, name) for name in cls.model_fields if name != "format"})


class SliceRecord(Record):
    """`slice.json`: a staged slice, complete once it exists.

    `plan` is the digest of all that its parts are made from: a slice that is planned anew is this one only if it is the
    same. None: nobody may take it up.
    """

    format: Literal[1] = 1
    table: str
    slice: SliceText
    kind: SliceKind
    life: int
    generation: int
    attempt: str
    incarnation: str
    first_number: int
    source_table_id: str
    source_schema: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    first_commit_ms: int | None
    last_commit_ms: int | None
    read: ChangeCounts
    parts: tuple[StagedPart, ...]
    verdicts: tuple[Verdict, ...] = ()
    chunk: Chunk | None = None
    plan: str | None = None

    @property
    def key(self) -> SliceKey:
        """The slice's key."""
        return SliceKey.parse(self.slice)

    @property
    def loading(self) -> Loading | None:
        """What is being loaded still once this has landed, or None."""
        return loading_of(self.slice, self.chunk)

    @property
    def covers(self) -> int:
        """The version that is covered once this has landed; -1 while chunks of its snapshot are left."""
        return -1 if self.loading else self.key.last

    def follows(self, loading: Loading | None) -> bool:
        """Whether it begins where a snapshot that is being loaded goes on, if one is."""
        return is_next(self.key, self.chunk, loading)

    @property
    def folder(self) -> AttemptFolder:
        """Where it is staged."""
        return AttemptFolder(TableName.parse(self.table), self.generation, self.attempt)

    @property
    def markers(self) -> MarkerCounts:
        """Rows written, by marker."""
        return sum((part.markers for part in self.parts), MarkerCounts())

    @property
    def bytes(self) -> int:
        """Size of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def part_folders(self) -> tuple[str, ...]:
        """Paths of the folders that the parts are in."""
        return tuple(dict.fromkeys(self.folder.part(part.name).rpartition("/")[0] for part in self.parts))

    @property
    def etags(self) -> tuple[str, ...]:
        """ETags of the parts, in order: what a verdict is bound to."""
        return tuple(part.etag for part in self.parts)


class Entry(Record):
    """A committed landing file: which staged part gets which number."""

    staged: str
    number: Annotated[int, Field(ge=1)]
    etag: str
    bytes: Count
    sha256: str | None
    markers: MarkerCounts


class Manifest(Record):
    """`_mirror.json`: what is covered, and the newest generation's files."""

    format: Literal[1] = 1
    incarnation: str
    life: Annotated[int, Field(ge=1)]
    source_table_id: str
    source_schema: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    dropped: tuple[str, ...] = ()
    generation: Annotated[int, Field(ge=1)]
    attempt: str
    slice: SliceText
    kind: SliceKind
    covered: Annotated[int, Field(ge=-1)]
    covered_commit_ms: int | None
    first_number: Annotated[int, Field(ge=1)]
    next_number: Annotated[int, Field(ge=1)]
    landed_rows: Count = 0
    entries: tuple[Entry, ...]
    chunk: Chunk | None = None

    @property
    def loading(self) -> Loading | None:
        """The snapshot that is being loaded, while chunks of it are left; nothing is covered until then."""
        return loading_of(self.slice, self.chunk)

    @property
    def live_columns(self) -> tuple[Column, ...]:
        """The columns that the newest slice has; the mirror keeps the dropped ones, too."""
        return tuple(column for column in self.columns if column.name not in self.dropped)

    @property
    def receipt(self) -> Receipt:
        """What the newest generation's files say of themselves."""
        return Receipt.of(self)


def loading_of(slice_: str, chunk: Chunk | None) -> Loading | None:
    """Return the snapshot that is being loaded once this chunk has landed; None behind the last chunk."""
    return None if chunk is None or chunk.is_last else Loading(SliceKey.parse(slice_), chunk)


RecordT = TypeVar("RecordT", bound=pydantic.BaseModel)


def encode(record: pydantic.BaseModel) -> bytes:
    """The record as JSON text."""
    return record.model_dump_json(indent=1).encode()


def decode(model: type[RecordT], path: str, data: bytes) -> RecordT:
    """The record in `data`, read from `path`. Raises ManifestCorrupt."""
    try:
        return model.model_validate_json(data)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the document"
        raise ManifestCorrupt(path, f"{where}: {first['msg']}") from None


def load(store: Store, model: type[RecordT], path: str) -> tuple[RecordT, Content] | None:
    """The record at `path` with the bytes and ETag it was read from, or None when there is none."""
    try:
        content = store.read(path, _LIMIT)
    except PathMissing:
        return None
    return decode(model, path, content.data), content
