"""Checkpoints: classic, in several parts, and v2 with sidecars (Delta's protocol, "Checkpoints")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import NativeFile

from mirror_assets.source.actions import Actions, LiveFile, Metadata, Protocol, Tombstone, Vector
from mirror_assets.source.log_paths import TablePaths, as_listed
from mirror_assets.source.parsing import (
    parse_actions,
    partition_values,
    read_metadata,
    read_protocol,
    read_vector,
    stored_rows,
)
from mirror_assets.source.source_files import SourceFiles

_SIDECARS = "_delta_log/_sidecars"
_PARSED_ROWS = "add.stats_parsed.numRecords"
_FILE = ("path", "size", "deletionVector", "stats")
_COLUMNS = (
    *(f"add.{name}" for name in ("path", "size", "deletionVector", "partitionValues", "modificationTime", "tags")),
    *(f"remove.{name}" for name in (*_FILE, "deletionTimestamp")),
    "metaData",
    "protocol",
    "sidecar.path",
)
# Statistics are most of a checkpoint's bytes: few rows at a time bound the memory.
_BATCH_ROWS = 1 << 15
_RECORDS_FIRST = r'^\s*\{\s*"numRecords"\s*:\s*(?P<rows>\d+)'

EachPart = Callable[[Callable[[str], Actions], Sequence[str]], "list[Actions]"]
"""Applies a function to every path, side by side where that pays."""


def read_checkpoint(files: SourceFiles, parts: Sequence[str], each: EachPart) -> Actions:
    """Read the live files, tombstones, metadata and protocol of a checkpoint, whose files are `parts`.

    Raises FileNotFoundError for a part or a sidecar that is gone, and ValueError, KeyError or TypeError for what is not
    a checkpoint.
    """

    def read(path: str) -> Actions:
        with files.open(path) as file:
            if path.endswith(".json"):
                return parse_actions(file.read(), files.paths)
            return _merged(_batches(file, files.paths))

    top = _merged(each(read, parts))
    sidecars = [f"{_SIDECARS}/{files.paths.decoded(path).rpartition('/')[2]}" for path in top.sidecars]
    return _merged([top, *each(read, sidecars)])


def _merged(parts: Iterable[Actions]) -> Actions:
    """Unite a checkpoint's parts, of which one has the metadata and the protocol."""
    all_parts = tuple(parts)
    return Actions(
        added=tuple(file for part in all_parts for file in part.added),
        removed=tuple(file for part in all_parts for file in part.removed),
        metadata=next((part.metadata for part in all_parts if part.metadata), None),
        protocol=next((part.protocol for part in all_parts if part.protocol), None),
        sidecars=tuple(path for part in all_parts for path in part.sidecars),
    )


def _batches(file: NativeFile, paths: TablePaths) -> Iterator[Actions]:
    parquet = pq.ParquetFile(file)
    there = {parquet.schema.column(index).path for index in range(len(parquet.schema))}
    rows = _PARSED_ROWS if _PARSED_ROWS in there else "add.stats"
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[*_COLUMNS, rows]):
        yield Actions(
            added=tuple(_live(_actions(batch, "add"), paths)),
            removed=tuple(_tombstones(_actions(batch, "remove"), paths)),
            metadata=_metadata(_actions(batch, "metaData")),
            protocol=_protocol(_actions(batch, "protocol")),
            sidecars=tuple(_column(_actions(batch, "sidecar"), "path")),
        )


def _actions(batch: pa.RecordBatch, kind: str) -> pa.StructArray:
    """The rows that have an action of this kind."""
    if kind not in batch.schema.names:
        return pa.array([], pa.struct([]))
    column = batch.column(kind)
    return column.filter(column.is_valid())


def _column(actions: pa.StructArray, name: str) -> list[Any]:
    """A field's values; all None where no action has it."""
    index = actions.type.get_field_index(name)
    if index < 0 or (column := actions.field(index)).null_count == len(actions):
        return [None] * len(actions)
    values: list[Any] = column.to_pylist()
    return values


def _live(adds: pa.StructArray, paths: TablePaths) -> Iterator[LiveFile]:
    if not len(adds):
        return
    columns = (
        _column(adds, "path"),
        _column(adds, "size"),
        _rows(adds),
        _column(adds, "modificationTime"),
        _column(adds, "partitionValues"),
        _vectors(adds, paths),
        _column(adds, "tags"),
    )
    for path, size, rows, modified, partition, vector, tags in zip(*columns, strict=True):
        values = partition_values(dict(partition or ()))
        yield LiveFile(paths.decoded(path), size, rows, modified, values, vector, dict(tags or ()), as_listed(path))


def _tombstones(removes: pa.StructArray, paths: TablePaths) -> Iterator[Tombstone]:
    if not len(removes):
        return
    columns = (
        _column(removes, "path"),
        _vectors(removes, paths),
        _column(removes, "deletionTimestamp"),
        _column(removes, "size"),
        _rows(removes),
    )
    for path, vector, deleted, size, rows in zip(*columns, strict=True):
        yield Tombstone(paths.decoded(path), vector, deleted or 0, size, rows, as_listed(path))


def _vectors(actions: pa.StructArray, paths: TablePaths) -> list[Vector | None]:
    return [read_vector(raw, paths) for raw in _column(actions, "deletionVector")]


def _rows(actions: pa.StructArray) -> list[int | None]:
    """Stored rows by the statistics, whichever way the checkpoint has them."""
    parsed = actions.type.get_field_index("stats_parsed")
    if parsed >= 0:
        return _column(actions.field(parsed), "numRecords")
    index = actions.type.get_field_index("stats")
    if index < 0:
        return [None] * len(actions)
    stats = actions.field(index)
    found = pc.struct_field(pc.extract_regex(stats, _RECORDS_FIRST), "rows")
    if found.null_count == stats.null_count:
        rows: list[int | None] = pc.cast(found, pa.int64()).to_pylist()
        return rows
    return [stored_rows(text) for text in stats.to_pylist()]


def _metadata(found: pa.StructArray) -> Metadata | None:
    rows = found.to_pylist()
    return read_metadata(rows[0] | {"configuration": dict(rows[0]["configuration"] or ())}) if rows else None


def _protocol(found: pa.StructArray) -> Protocol | None:
    rows = found.to_pylist()
    return read_protocol(rows[0]) if rows else None
