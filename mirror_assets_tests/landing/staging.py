"""Small staged slices for tests: real Parquet parts with receipts, and their records with verdicts."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.format import (
    RECEIPT_KEY,
    ChangeCounts,
    CheckVerdict,
    Chunk,
    Column,
    Manifest,
    MarkerCounts,
    Receipt,
    SliceKind,
    SliceRecord,
    StagedPart,
    encode,
)
from mirror_assets.landing.names import AttemptFolder, SliceKey, TableName
from mirror_assets.landing.publish import Published, publish
from mirror_assets.landing.state import CommitPosition, next_position, put_manifest, read_manifest
from mirror_assets.landing.steps import Create, Steps, drive
from mirror_assets.markers import ROW_MARKER
from mirror_assets.zones import Store

TABLE: Final = TableName.parse("shop.orders")
CHECKS: Final = ("key_presence", "row_conservation")
KEYS: Final = ("id",)
SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_ONE_COLUMN: Final = (Column(name="id", type="bigint"),)
COLUMNS: Final = (Column(name="id", type="bigint"), Column(name="part", type="bigint"))


def hex_id(text: str) -> str:
    """An attempt id or incarnation that a test can recognise; it sorts like the text."""
    return text.encode().hex().ljust(32, "0")[:32]


INCARNATION: Final = hex_id("epoch")
# The number in a part of a chunk is the source's file times this, plus the number of the part in the chunk.
FILE: Final = 10


def spark_schema(receipt_text: str) -> bytes:
    """The schema text that Spark's writer leaves in a footer when the first column carries a receipt."""
    first = {"name": "id", "type": "long", "nullable": True, "metadata": {RECEIPT_KEY: receipt_text}}
    second = {"name": "part", "type": "long", "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [first, second]}).encode()


@functools.cache
def part_bytes(receipt: Receipt, index: int) -> bytes:
    """A part with two rows, whose content tells the slice's last version and the part."""
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64()), (ROW_MARKER, pa.int32())])
    last = receipt.slice.last
    rows = pa.table({"id": [last, last], "part": [index, index], ROW_MARKER: [0, 2]}, schema=schema)
    sink = io.BytesIO()
    pq.write_table(rows.replace_schema_metadata({SPARK_SCHEMA: spark_schema(receipt.model_dump_json())}), sink)
    return sink.getvalue()


@functools.cache
def content_of(data: bytes) -> tuple[int, int]:
    """The last version of the slice and the part that a landing file holds."""
    rows = pq.read_table(io.BytesIO(data), columns=["id", "part"])
    return (rows.column("id")[0].as_py(), rows.column("part")[0].as_py())


def receipt_for(position: CommitPosition, key: SliceKey, attempt: str) -> Receipt:
    """The receipt of every part that is staged like this."""
    return Receipt(
        incarnation=position.incarnation,
        source_table_id="source",
        slice=key,
        generation=position.generation,
        attempt=attempt,
        first_number=position.first_number,
    )


def part_content(index: int, chunk: Chunk | None) -> int:
    """What the part with this index holds, where each file of the source becomes a part."""
    return index if chunk is None else FILE * (chunk.first + index + 1) + index


def new_record(
    position: CommitPosition, key: SliceKey, attempt: str, parts: tuple[StagedPart, ...], chunk: Chunk | None = None
) -> SliceRecord:
    """The record of parts that are staged already; it has no verdicts."""
    return SliceRecord(
        table=str(TABLE),
        slice=key,
        kind=SliceKind.SNAPSHOT if key.first == 0 else SliceKind.CHANGES,
        epoch=position.epoch,
        generation=position.generation,
        attempt=attempt,
        incarnation=position.incarnation,
        first_number=position.first_number,
        source_table_id="source",
        source_schema="{}",
        keys=KEYS,
        columns=COLUMNS,
        first_commit_ms=1_000,
        last_commit_ms=2_000 + key.last,
        read=ChangeCounts(insert=len(parts), delete=len(parts)),
        parts=parts,
        chunk=chunk,
    )


def with_verdicts(record: SliceRecord, *, passed: bool = True) -> SliceRecord:
    """The record with a verdict of every blocking check for its parts."""
    verdicts = tuple(CheckVerdict(check=check, passed=passed, etags=record.etags) for check in CHECKS)
    return record.model_copy(update={"verdicts": verdicts})


def staging(
    position: CommitPosition, last: int, parts: int = 1, attempt: str = "one", chunk: Chunk | None = None
) -> Steps[SliceRecord]:
    """The record of a staged slice that goes on where `position` stands, with passed verdicts."""
    key, name = SliceKey(position.epoch, 0 if chunk else position.covered + 1, last), hex_id(attempt)
    folder = AttemptFolder(TABLE, position.generation, name)
    receipt, staged = receipt_for(position, key, name), []
    for index in range(parts):
        data, part = part_bytes(receipt, part_content(index, chunk)), f"part-{index:05d}.parquet"
        etag: str = yield from Create(folder.part(part), data)
        digest, markers = hashlib.sha256(data).hexdigest(), MarkerCounts(inserts=1, deletes=1)
        staged.append(StagedPart(name=part, etag=etag, bytes=len(data), sha256=digest, markers=markers))
    record = with_verdicts(new_record(position, key, name, tuple(staged), chunk))
    yield from Create(folder.record, encode(record))
    return record


def stage(
    store: Store, position: CommitPosition, last: int, parts: int = 1, attempt: str = "one", chunk: Chunk | None = None
) -> SliceRecord:
    """The same, done."""
    return drive(staging(position, last, parts, attempt, chunk), store)


def stage_repair(
    store: Store, position: CommitPosition, last: int, parts: int = 1, attempt: str = "one"
) -> SliceRecord:
    """A repair up to version `last`, the covered one or a later one, staged where `position` stands."""
    before = replace(position, covered=min(position.covered, last - 1))
    record = stage(store, before, last, parts, attempt).model_copy(update={"kind": SliceKind.REPAIR})
    store.replace(record.folder.record, encode(record), store.head(record.folder.record).etag)  # type: ignore[union-attr]
    return record


def stage_chunk(
    store: Store, position: CommitPosition, end: int, of: int, attempt: str = "one", last: int = 7
) -> SliceRecord:
    """Next chunk of version `last`, up to the source's file `end`, staged where `position` stands; files are parts."""
    chunk = next_chunk(position, end, of)
    return stage(store, position, last, end - chunk.first, attempt, chunk)


def next_chunk(position: CommitPosition, end: int, of: int) -> Chunk:
    """The chunk that goes on where `position` stands, up to the source's file `end`."""
    landed = position.loading.chunk if position.loading else None
    return Chunk(number=landed.number + 1 if landed else 1, of=of, first=landed.end if landed else 0, end=end)


def land(store: Store, record: SliceRecord, rebuild_epoch: int | None = None) -> Published:
    """Publish the staged slice."""
    return drive(publish(TABLE, record, CHECKS, rebuild_epoch), store)


def land_next(store: Store, last: int, parts: int = 1, attempt: str = "one") -> Published:
    """Stage the next slice, up to version `last`, and publish it."""
    return land(store, stage(store, position_of(store), last, parts, attempt))


def manifest_of(store: Store) -> Manifest | None:
    """The table's manifest, or None."""
    current = drive(read_manifest(TABLE), store)
    return current.manifest if current else None


def landed_manifest(store: Store) -> Manifest:
    """The manifest of a table that has one."""
    manifest = manifest_of(store)
    assert manifest is not None
    return manifest


def position_of(store: Store) -> CommitPosition:
    """What the next slice must be staged as."""
    return next_position(manifest_of(store), epoch=1, incarnation=INCARNATION)


def cover(
    store: Store,
    table: TableName,
    version: int,
    table_id: str = "t",
    schema: str = "{}",
    columns: tuple[Column, ...] = _ONE_COLUMN,
    kind: SliceKind = SliceKind.SNAPSHOT,
) -> None:
    """Say in the table's manifest that everything up to the version has landed, as a slice without parts."""
    manifest = Manifest(
        incarnation="paper",
        epoch=1,
        source_table_id=table_id,
        source_schema=schema,
        keys=KEYS,
        columns=columns,
        generation=1,
        attempt="paper",
        slice=SliceKey(1, 0, version),
        kind=kind,
        covered=version,
        covered_commit_ms=None,
        first_number=1,
        next_number=2,
        entries=(),
    )
    drive(put_manifest(table, manifest, None), store)
