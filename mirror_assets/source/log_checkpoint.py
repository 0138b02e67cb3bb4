"""Checkpoints: classic, in several parts, and v2 with sidecars (Delta's protocol, "Checkpoints")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import NativeFile

from mirror_assets.source.actions import Actions
from mirror_assets.source.log_paths import TablePaths
from mirror_assets.source.parsing import (
    RECORDS_FIRST,
    RawAction,
    live_file,
    parse_actions,
    read_metadata,
    read_protocol,
    stored_rows,
    tombstone,
)
from mirror_assets.source.source_files import SourceFiles

_SIDECARS = "_delta_log/_sidecars"
_PARSED_ROWS = "add.stats_parsed.numRecords"
_FILE = ("path", "size", "deletionVector", "partitionValues", "baseRowId", "defaultRowCommitVersion")
_COLUMNS = (
    *(f"add.{name}" for name in (*_FILE, "modificationTime", "tags")),
    *(f"remove.{name}" for name in (*_FILE, "stats", "deletionTimestamp")),
    "metaData",
    "protocol",
    "sidecar.path",
)
# Statistics are most of a checkpoint's bytes: a few rows at a time bound the memory.
_BATCH_ROWS = 1 << 15


def read_checkpoint(files: SourceFiles, parts: Sequence[str], among: Collection[str] | None = None) -> Actions:
    """Read the live files, tombstones, metadata and protocol of a checkpoint, whose files are `parts`.

    `among`: of files that Parquet names, those with these decoded paths are enough, and more may be returned. It saves
    Python's time for the others.

    Raises FileNotFoundError for a missing part or sidecar, and InvalidAction, SCHEMA_UNREADABLE or pyarrow's errors for
    a file that is not part of a checkpoint.
    """

    def read(path: str) -> Actions:
        with files.open(path) as file:
            if path.endswith(".json"):
                return parse_actions(file.read(), files.paths)
            return _merged(_batches(file, files.paths, among))

    top = _merged(files.each(read, parts))
    sidecars = [f"{_SIDECARS}/{files.paths.decoded(path).rpartition('/')[2]}" for path in top.sidecars]
    return _merged([top, *files.each(read, sidecars)])


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


def _batches(file: NativeFile, paths: TablePaths, among: Collection[str] | None) -> Iterator[Actions]:
    parquet = pq.ParquetFile(file)
    columns = {parquet.schema.column(index).path for index in range(len(parquet.schema))}
    rows = _PARSED_ROWS if _PARSED_ROWS in columns else "add.stats"
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[*_COLUMNS, rows]):
        yield Actions(
            added=tuple(live_file(add, paths, add["rows"]) for add in _actions(batch, "add", among)),
            removed=tuple(tombstone(remove, paths, remove["rows"]) for remove in _actions(batch, "remove", among)),
            metadata=next(map(read_metadata, _actions(batch, "metaData")), None),
            protocol=next(map(read_protocol, _actions(batch, "protocol")), None),
            sidecars=tuple(sidecar["path"] for sidecar in _actions(batch, "sidecar")),
        )


def _actions(batch: pa.RecordBatch, kind: str, among: Collection[str] | None = None) -> Iterator[RawAction]:
    """Yield the actions of this kind, with the stored `rows` in place of their statistics; NULL fields are left out.

    `among`: of files, those with these paths are enough.
    """
    if kind not in batch.schema.names:
        return
    column = batch.column(kind)
    actions = pa.RecordBatch.from_struct_array(column.filter(column.is_valid()))
    if among is not None:
        actions = actions.filter(may_be_among(actions.column("path"), among))
    fields = {name: actions.column(name) for name in actions.schema.names if not name.startswith("stats")}
    known = {name: values.to_pylist() for name, values in fields.items() if values.null_count < len(values)}
    known["rows"] = _rows(actions)
    yield from (dict(zip(known, values, strict=True)) for values in zip(*known.values(), strict=True))


def may_be_among(paths: pa.Array | pa.ChunkedArray, wanted: Collection[str]) -> pa.Array | pa.ChunkedArray:
    """Return for each path of the log whether it may be one of these, which may be decoded, or without `.` segments."""
    is_plain = pc.invert(pc.match_substring_regex(paths, "[%:]|^/|//|\\./"))
    return pc.or_(pc.invert(is_plain), pc.is_in(paths, pa.array(wanted, paths.type)))


def _rows(actions: pa.RecordBatch) -> list[int | None]:
    """Return the stored rows by the statistics, as columns or as JSON."""
    rows: list[int | None] = [None] * len(actions)
    if "stats_parsed" in actions.schema.names:
        counts = pc.struct_field(actions.column("stats_parsed"), "numRecords").to_pylist()
        rows = [stored_rows({"numRecords": count}) for count in counts]
    elif "stats" in actions.schema.names:
        stats = actions.column("stats")
        found = pc.struct_field(pc.extract_regex(stats, RECORDS_FIRST), "rows")
        is_first = found.null_count == stats.null_count
        rows = pc.cast(found, pa.int64()).to_pylist() if is_first else [stored_rows(text) for text in stats.to_pylist()]
    return rows
