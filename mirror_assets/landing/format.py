"""The control files in a landing zone, as values (docs/landing-folder.md).

They are read back as untrusted input: sizes are limited, unknown fields refused, types checked.
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


def _recorded_slice(value: object) -> SliceKey:
    if isinstance(value, SliceKey):
        return value
    try:
        return SliceKey.from_record(str(value))
    except NameRefused as error:
        raise ValueError(error.what) from error


def _part_name(name: str) -> str:
    if part_place(name) is None:
        raise ValueError(f"{name!r} is no part's name")
    return name


PartName = Annotated[str, pydantic.AfterValidator(_part_name)]
RecordedSlice = Annotated[
    SliceKey,
    pydantic.PlainValidator(_recorded_slice),
    pydantic.PlainSerializer(lambda key: key.recorded, return_type=str),
]


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
    """No rows: the columns alone, to start an epoch that has nothing to land yet."""

    @property
    def has_markers(self) -> bool:
        """Whether its files have a row marker column; else all rows are inserts."""
        return self in (SliceKind.CHANGES, SliceKind.NET)


class Record(pydantic.BaseModel):
    """The base of all control files: values never change, unknown fields are refused, types are not converted."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Chunk(Record):
    """The `number`-th of `of` chunks of a snapshot: the version's files `first` to `end` - 1, in order of their paths.

    It has its end, so that the next chunk starts there even if settings have changed.
    """

    number: Annotated[int, Field(ge=1)]
    of: Annotated[int, Field(ge=1)]
    first: Count
    end: Annotated[int, Field(ge=1)]

    @property
    def is_last(self) -> bool:
        """Whether it completes the snapshot."""
        return self.number == self.of

    def __str__(self) -> str:
        """`3 of 7`."""
        return f"{self.number} of {self.of}"


@dataclass(frozen=True)
class Loading:
    """A snapshot that is being loaded: its slice, and the newest landed chunk."""

    key: SliceKey
    chunk: Chunk

    def __str__(self) -> str:
        """For people."""
        return f"loading: {self.chunk} chunks of version {self.key.last}"


def is_next(key: SliceKey, chunk: Chunk | None, loading: Loading | None) -> bool:
    """Whether the slice, or this chunk of it, can come next while a snapshot is being loaded.

    When none is, any slice without chunks can, and any first chunk.
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
    """One staged part as it was read back; `sha256` is None when its bytes were never on this machine.

    Its rows are of the commits `first_version` to `last_version`; None when that is not known.
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


class CheckVerdict(Record):
    """The result of a blocking check, for files with exactly these ETags."""

    check: str
    passed: bool
    etags: tuple[str, ...]
    message: str = ""


class Receipt(Record):
    """The identity of a landing file, in its own Parquet key-value metadata (docs/landing-folder.md)."""

    format: Literal[1] = 1
    incarnation: str
    source_table_id: str
    slice: RecordedSlice
    generation: int
    attempt: str
    first_number: int

    @classmethod
    def of(cls, generation: Record) -> Receipt:
        """Return the receipt in the files of a committed generation, as its manifest or its history has it."""
        return cls.model_validate({name: getattr(generation, name) for name in cls.model_fields if name != "format"})


class SliceRecord(Record):
    """`slice.json`: a staged slice, which is complete when this file exists.

    `plan` is the digest of everything that determines its parts: a new plan can reuse the slice only if it has the same
    digest. None: it can't be reused.
    """

    format: Literal[1] = 1
    table: str
    slice: RecordedSlice
    kind: SliceKind
    epoch: int
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
    verdicts: tuple[CheckVerdict, ...] = ()
    chunk: Chunk | None = None
    plan: str | None = None

    @property
    def loading(self) -> Loading | None:
        """The snapshot that is still being loaded once this has landed, or None."""
        return loading_of(self.slice, self.chunk)

    @property
    def covers(self) -> int:
        """The version that is covered once this has landed; -1 while chunks of its snapshot are left."""
        return -1 if self.loading else self.slice.last

    def follows(self, loading: Loading | None) -> bool:
        """Whether it can come next while a snapshot is being loaded, or when none is."""
        return is_next(self.slice, self.chunk, loading)

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
    epoch: Annotated[int, Field(ge=1)]
    source_table_id: str
    source_schema: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    dropped: tuple[str, ...] = ()
    generation: Annotated[int, Field(ge=1)]
    attempt: str
    slice: RecordedSlice
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
        """The snapshot that is being loaded, until its last chunk lands; nothing is covered until then."""
        return loading_of(self.slice, self.chunk)

    @property
    def live_columns(self) -> tuple[Column, ...]:
        """The columns of the newest slice; the mirror also keeps the dropped ones."""
        return tuple(column for column in self.columns if column.name not in self.dropped)

    @property
    def receipt(self) -> Receipt:
        """The receipt in the newest generation's files."""
        return Receipt.of(self)


def loading_of(key: SliceKey, chunk: Chunk | None) -> Loading | None:
    """Return the snapshot that is being loaded once this chunk has landed; None behind the last chunk."""
    return None if chunk is None or chunk.is_last else Loading(key, chunk)


RecordT = TypeVar("RecordT", bound=pydantic.BaseModel)


def encode(record: pydantic.BaseModel) -> bytes:
    """The record as JSON text."""
    return record.model_dump_json(indent=1).encode()


def decode(model: type[RecordT], path: str, data: bytes) -> RecordT:
    """The record in `data`, read from `path`. Raises ManifestCorrupt."""
    try:
        return model.model_validate_json(data)
    except pydantic.ValidationError as error:
        raise ManifestCorrupt(path, first_problem(error)) from None


def first_problem(error: pydantic.ValidationError) -> str:
    """Return where a document is invalid first, and why; without its values."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "the document"
    return f"{where}: {first['msg']}"


def load(store: Store, model: type[RecordT], path: str) -> tuple[RecordT, Content] | None:
    """The record at `path` with the bytes and ETag it was read from, or None when there is none."""
    try:
        content = store.read(path, _LIMIT)
    except PathMissing:
        return None
    return decode(model, path, content.data), content
