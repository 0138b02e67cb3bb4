"""The Parquet files of a mirror table: reading keys and rows, writing new ones."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from mirror_assets.replicator.columns import aligned

_FILE_ROWS = 1_000_000
_GROUP_ROWS = 250_000


@dataclass(frozen=True)
class DataFile:
    """One live data file of a mirror table."""

    path: str
    size: int
    rows: int


def read_file(folder: Path, file: DataFile, schema: pa.Schema) -> pa.Table:
    """All rows of a data file, with the table's present columns."""
    return _read(folder, file, schema)


def read_keys(folder: Path, files: Sequence[DataFile], schema: pa.Schema, keys: Sequence[str]) -> pa.Table:
    """The key columns of several files, one after the other."""
    wanted = pa.schema([schema.field(key) for key in keys])
    return pa.concat_tables([wanted.empty_table(), *(_read(folder, file, wanted) for file in files)])


def _read(folder: Path, file: DataFile, schema: pa.Schema) -> pa.Table:
    with pq.ParquetFile(str(folder / file.path)) as parquet:
        present = [name for name in schema.names if name in parquet.schema_arrow.names]
        rows = parquet.read(columns=present)
        # A file from before all these columns were added still counts its rows.
        return aligned(rows, schema) if present else _all_null(schema, parquet.metadata.num_rows)


def _all_null(schema: pa.Schema, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema)


def write_files(folder: Path, rows: Iterator[pa.Table], schema: pa.Schema) -> list[AddAction]:
    """Write the rows in order into new files of about a million rows; what to add to the table."""
    added: list[AddAction] = []
    held: list[pa.Table] = []
    for table in rows:
        held.append(table)
        while sum(part.num_rows for part in held) >= _FILE_ROWS:
            whole = pa.concat_tables(held)
            added.append(_write(folder, whole.slice(0, _FILE_ROWS), schema))
            held = [whole.slice(_FILE_ROWS)]
    rest = pa.concat_tables([schema.empty_table(), *held])
    return [*added, _write(folder, rest, schema)] if rest.num_rows else added


def _write(folder: Path, rows: pa.Table, schema: pa.Schema) -> AddAction:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"part-{uuid.uuid4().hex}.parquet"
    path = folder / name
    pq.write_table(rows.cast(schema), str(path), compression="snappy", row_group_size=_GROUP_ROWS)
    stat = path.stat()
    statistics = json.dumps({"numRecords": rows.num_rows})
    return AddAction(name, stat.st_size, {}, stat.st_mtime_ns // 1_000_000, True, statistics)  # noqa: FBT003, their API
