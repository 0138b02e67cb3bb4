"""Models of the control files in a landing zone (docs/landing-folder.md).

They are read as untrusted input: sizes are limited, unknown fields refused, types checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal, TypeVar

import pydantic
from pydantic import Field

from mirror_assets.column_types import LongValues
from mirror_assets.landing.errors import MANIFEST_CORRUPT, NameRefused
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName, part_place

RECEIPT_KEY = "mirror_assets"

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
        raise ValueError(f"{name!r} is not the name of a part")
    return name


PartName = Annotated[str, pydantic.AfterValidator(_part_name)]
RecordedSlice = Annotated[
    SliceKey,
    pydantic.PlainValidator(_recorded_slice),
    pydantic.PlainSerializer(lambda key: key.recorded, return_type=str),
]


class SliceKind(str, Enum):
    """What the files of a slice contain."""

    SNAPSHOT = "snapshot"
    CHANGES = "changes"
    """A change per key and commit."""
    NET = "net"
    """One net change per key."""
    APPENDS = "appends"
    """New rows only."""
    START = "start"
    """Columns without rows, which start an epoch that has nothing to land yet."""
    REPAIR = "repair"
    """The difference between the mirror, after all earlier generations, and the source at the last version."""

    @property
    def has_markers(self) -> bool:
        """Whether its files have a row marker column; otherwise all rows are inserts."""
        return self in (SliceKind.CHANGES, SliceKind.NET, SliceKind.REPAIR)


class Record(pydantic.BaseModel):
    """Base of all control files: immutable, unknown fields are refused, types are not converted."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class Chunk(Record):
    """The `number`-th of `of` chunks of a snapshot: the version's files `first` to `end` - 1, in order of their paths.

    The next chunk starts at `end`, even if settings have changed.
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
        """`loading: 3 of 7 chunks of version 12`."""
        return f"loading: {self.chunk} chunks of version {self.key.last}"


def continues(kind: SliceKind, key: SliceKey, covered: int) -> bool:
    """Whether a slice that begins no epoch can follow this covered version; a repair may have no new commit."""
    again = kind is SliceKind.REPAIR and key.first == key.last == covered
    return again or key.first == covered + 1


def is_next(key: SliceKey, chunk: Chunk | None, loading: Loading | None) -> bool:
    """Whether the slice, or this chunk of it, can land next while a snapshot is being loaded.

    If none is being loaded, any slice without chunks can, and any first chunk.
    """
    if loading is None:
        return chunk is None or (chunk.number, chunk.first) == (1, 0)
    after = (loading.chunk.number + 1, loading.chunk.end)
    return key == loading.key and chunk is not None and (chunk.number, chunk.first) == after


class Column(Record):
    """A landed column: its name, and its landing type in Spark's spelling (`bigint`, `decimal(10,2)`).

    `expression` is the fingerprint of the expression that computes it; None for a column of the source.
    """

    name: str
    type: str
    expression: str | None = None


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


class ScannedRows(Record):
    """Rows that Spark read from the source's files for a slice, before `where`, as an Observation counted them.

    `new` are inserts and new rows of updates, `old` deletes and old rows of updates; `preimages` and `postimages` are
    those of them that come from change files. `weighted` is the sum over all rows of the weight of their commit's
    version, (version * 2654435761) % 1000003 + 1, negative for old rows. A task that Spark runs twice counts twice, so
    numbers that differ from the log's prove nothing before a second count.
    """

    new: Count = 0
    old: Count = 0
    preimages: Count = 0
    postimages: Count = 0
    weighted: int = 0


class StagedPart(Record):
    """A staged part; `sha256` is None if its bytes were never on this machine.

    Its rows are of the commits `first_version` to `last_version`; None if unknown.
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
        """The commit of all its rows; None for several commits, or if unknown."""
        return self.first_version if self.first_version == self.last_version else None


class CheckVerdict(Record):
    """The result of a blocking check, for files with exactly these ETags.

    `unproved` is the number of commits that it could not judge.
    """

    check: str
    passed: bool
    etags: tuple[str, ...]
    message: str = ""
    unproved: Count = 0


class Receipt(Record):
    """The identity of a landing file, in its own Parquet key-value metadata (docs/landing-folder.md)."""

    format: Literal[1] = 1
    incarnation: str
    source_table_id: str
    slice: RecordedSlice
    generation: int
    attempt: str
    first_number: int


class ComparedVersions(Record):
    """The versions that a slice was read from by files, and the number and bytes of the files that differ.

    `because` is the reason why the change data feed was not read; empty if the settings choose files.
    """

    before: int
    last: int
    files: int
    bytes: int
    because: str = ""


class SliceRecord(Record):
    """`slice.json`: a staged slice, which is complete when this file exists.

    `where` is the fingerprint of the condition for rows; None for all rows. `binding` is a digest of the settings and
    the plan that decide the rows of the parts: only settings with the same digest can reuse and publish the slice.
    `scanned` is None for a slice that reads no file of the source, and for a repair. `commit_digest` is that of the
    file of its last commit, by which a log that was rolled back is noticed; None if the slice has not read the commit.
    `changed_keys` are those that a comparison of two versions found; None for other slices.
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
    where: str | None = None
    first_commit_ms: int | None
    last_commit_ms: int | None
    read: ChangeCounts
    scanned: ScannedRows | None = None
    changed_keys: int | None = None
    parts: tuple[StagedPart, ...]
    verdicts: tuple[CheckVerdict, ...] = ()
    chunk: Chunk | None = None
    compared: ComparedVersions | None = None
    binding: str | None = None
    commit_digest: str | None = None
    long_values: LongValues = {}

    @property
    def loading(self) -> Loading | None:
        """The snapshot that is still being loaded once this slice has landed, or None."""
        return loading_of(self.slice, self.chunk)

    @property
    def covers(self) -> int:
        """The version that is covered once this slice has landed; -1 while chunks of its snapshot are left."""
        return -1 if self.loading else self.slice.last

    @property
    def folder(self) -> AttemptFolder:
        """The folder in which it is staged."""
        return AttemptFolder(TableName.parse(self.table), self.generation, self.attempt)

    @property
    def markers(self) -> MarkerCounts:
        """Rows written, by marker."""
        return sum((part.markers for part in self.parts), MarkerCounts())

    @property
    def unproved_commits(self) -> int:
        """The number of its commits that the log can't prove, by its verdicts."""
        return max((verdict.unproved for verdict in self.verdicts), default=0)

    @property
    def commits_by_files(self) -> int:
        """The number of its commits if it was read by files because its change data feed could not be; else 0."""
        because = self.compared is not None and self.compared.because
        return self.slice.last - self.slice.first + 1 if because else 0

    @property
    def bytes(self) -> int:
        """Size of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def etags(self) -> tuple[str, ...]:
        """ETags of the parts, in order: what a verdict is bound to."""
        return tuple(part.etag for part in self.parts)


class CommittedFile(Record):
    """A committed landing file: its number, and the facts by which it is recognised."""

    number: Annotated[int, Field(ge=1)]
    etag: str
    bytes: Count
    sha256: str | None
    markers: MarkerCounts


class Entry(CommittedFile):
    """A committed landing file, and the path of the staged part that gets its number."""

    staged: str


class CommittedGeneration(Record):
    """The facts of one commit that later commits and checks need; -1 is covered until a snapshot's last chunk lands."""

    incarnation: str
    epoch: Annotated[int, Field(ge=1)]
    generation: Annotated[int, Field(ge=1)]
    attempt: str
    source_table_id: str
    slice: RecordedSlice
    kind: SliceKind
    chunk: Chunk | None = None
    covered: Annotated[int, Field(ge=-1)]
    first_number: Annotated[int, Field(ge=1)]
    next_number: Annotated[int, Field(ge=1)]

    @property
    def loading(self) -> Loading | None:
        """The snapshot that is still being loaded after this commit, or None."""
        return loading_of(self.slice, self.chunk)

    @property
    def receipt(self) -> Receipt:
        """The receipt in its files."""
        return Receipt.model_validate(self, from_attributes=True)


class Manifest(CommittedGeneration):
    """`_mirror.json`: the newest generation with its files, and the state of the table after it.

    `where` is the fingerprint of the condition that all rows have met; None for all rows. `commit_digest` is that of
    the newest slice.
    """

    format: Literal[1] = 1
    source_schema: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    where: str | None = None
    dropped: tuple[str, ...] = ()
    covered_commit_ms: int | None
    commit_digest: str | None = None
    landed_rows: Count = 0
    unproved_commits: Count = 0
    commits_by_files: Count = 0
    long_values: LongValues = {}
    entries: tuple[Entry, ...]

    @property
    def files(self) -> tuple[CommittedFile, ...]:
        """The committed files, without the paths of their parts."""
        return tuple(CommittedFile(**entry.model_dump(exclude={"staged"})) for entry in self.entries)

    @property
    def live_columns(self) -> tuple[Column, ...]:
        """The columns of the newest slice; the mirror also retains the dropped ones."""
        return tuple(column for column in self.columns if column.name not in self.dropped)


def loading_of(key: SliceKey, chunk: Chunk | None) -> Loading | None:
    """Return the snapshot that is being loaded once this chunk has landed; None after the last chunk."""
    return None if chunk is None or chunk.is_last else Loading(key, chunk)


RecordT = TypeVar("RecordT", bound=pydantic.BaseModel)


def encode(record: pydantic.BaseModel) -> bytes:
    """Return the record as JSON text."""
    return record.model_dump_json(indent=1).encode()


def decode(model: type[RecordT], path: str, data: bytes) -> RecordT:
    """Parse the record in `data`, which was read from `path`. Raises ManifestCorrupt."""
    try:
        return model.model_validate_json(data)
    except pydantic.ValidationError as error:
        raise MANIFEST_CORRUPT(path=path, why=first_problem(error)) from None


def first_problem(error: pydantic.ValidationError) -> str:
    """Return the place and reason of a document's first error, without its values."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "the document"
    return f"{where}: {first['msg']}"
