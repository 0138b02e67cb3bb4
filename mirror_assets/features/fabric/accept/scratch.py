"""Scratch tables: landed by the project's own publishing code, named so that leftovers are found, and removed."""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.folders import table_names
from mirror_assets.landing.format import ChangeCounts, SliceKind, SliceRecord
from mirror_assets.landing.names import (
    REBUILDS,
    SCRATCH,
    AttemptFolder,
    SliceKey,
    TableName,
    attempt_id,
    is_schema_folder,
    record_to_table,
)
from mirror_assets.landing.publish import publish
from mirror_assets.landing.rebuild import RebuildStep, advance_rebuild, begin_drop, first_epoch, remove_table
from mirror_assets.landing.staged_parts import inspect_part, write_record
from mirror_assets.landing.state import CommitPosition, next_position, read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.zones import Store

PREFIX = "mirror_assets_accept_"


class ScratchTable:
    """A table of an exercise in the landing zone; each slice is one version, from 0. It has no source."""

    def __init__(self, store: Store, name: TableName, keys: Sequence[str]) -> None:
        """Name the table; nothing is written yet."""
        self.name, self._store, self._keys = name, store, tuple(keys)

    def land(self, *files: pa.Table) -> None:
        """Publish the files as the next slice, each under its own number. Raises what publishing raises."""
        current = drive(read_manifest(self.name), self._store)
        epoch = drive(first_epoch(self.name), self._store)
        manifest = current.manifest if current else None
        record = self._staged(next_position(manifest, epoch=epoch, incarnation=secrets.token_hex(16)), files)
        write_record(self._store, record)
        drive(publish(self.name, record, ()), self._store)

    def land_raw(self, number: int, data: bytes) -> None:
        """Write a landing file without the protocol, in place of one with this number, as a faulty publisher would."""
        self._store.delete(self.name.landing_file(number))
        self._store.create(self.name.landing_file(number), data)

    def drop(self) -> None:
        """Delete the table folder, as `mirror-assets drop` does; the next slice starts another epoch."""
        record = drive(begin_drop(self.name), self._store)
        drive(remove_table(self.name, record), self._store)
        drive(advance_rebuild(self.name, record, RebuildStep.DROPPED), self._store)

    def _staged(self, position: CommitPosition, files: Sequence[pa.Table]) -> SliceRecord:
        """Stage the files as Spark's would be; only their footers lack Spark's metadata."""
        version, now = position.covered + 1, time.time_ns() // 1_000_000
        attempt = attempt_id(now, secrets.token_bytes(10))
        folder = AttemptFolder(self.name, position.generation, attempt)
        for index, rows in enumerate(files):
            self._store.create(folder.part(f"part-{index:05d}.parquet"), parquet(rows))
        return SliceRecord(
            table=str(self.name),
            slice=SliceKey(position.epoch, version, version),
            kind=SliceKind.CHANGES if version else SliceKind.SNAPSHOT,
            epoch=position.epoch,
            generation=position.generation,
            attempt=attempt,
            incarnation=position.incarnation,
            first_number=position.first_number,
            source_table_id="accept",
            source_schema="{}",
            keys=self._keys,
            columns=(),
            first_commit_ms=now,
            last_commit_ms=now,
            read=ChangeCounts(),
            parts=tuple(inspect_part(self._store, info, info.name) for info in self._store.list(folder.parts)),
        )


def parquet(rows: pa.Table) -> bytes:
    """Return the rows as a Parquet file, with decimals as Spark writes them."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, store_decimal_as_integer=True)
    return sink.getvalue()


def is_scratch(name: TableName) -> bool:
    """Whether the table is a scratch table, of any run."""
    return name.table.startswith(PREFIX)


def leftovers(store: Store) -> tuple[TableName, ...]:
    """Return the scratch tables, of all runs, of which anything is left in the landing zone."""
    schemas = (info.name.partition(".")[0] for info in store.list("") if is_schema_folder(info.name))
    # A name in each schema, so that `remove` also deletes a schema folder that has no table any more.
    found = {*table_names(store), *(TableName(schema, schema) for schema in schemas)}
    found |= {name for info in store.list(REBUILDS) if (name := record_to_table(info.name))}
    for info in store.list(SCRATCH):
        with suppress(NameRefused):
            found.add(TableName.parse(info.name))
    return tuple(sorted(filter(is_scratch, found)))


def remove(store: Store, name: TableName) -> None:
    """Delete everything of a scratch table; Fabric then drops the mirrored table. Raises ValueError for others."""
    if not is_scratch(name):
        raise ValueError(f"{name} is not a scratch table")
    store.delete_tree(name.scratch)
    store.delete_tree(name.folder)
    store.delete(name.rebuild_record)
    schema = name.folder.rpartition("/")[0]
    if schema.startswith(PREFIX) and not store.list(schema):
        store.delete_tree(schema)
