"""Checkpoints: classic, in several parts, and v2 with sidecars (Delta's protocol, "Checkpoints")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import NativeFile

from mirror_assets.source.actions import Actions
from mirror_assets.source.live_file_columns import NAMED_FILES, named_files
from mirror_assets.source.log_paths import TablePaths, spelled
from mirror_assets.source.parsing import (
    RECORDS_FIRST,
    InvalidAction,
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
    return _merged([top, *files.each(read, _located(top.sidecars, files))])


def checkpoint_files(files: SourceFiles, parts: Sequence[str]) -> pa.Table:
    """Return the live files of a checkpoint as columns, by NAMED_FILES; raises what `read_checkpoint` raises."""

    def read(path: str) -> tuple[list[pa.Table], list[str]]:
        with files.open(path) as file:
            if path.endswith(".json"):
                top = parse_actions(file.read(), files.paths)
                return [named_files(top)], list(top.sidecars)
            return _file_columns(file)

    top = files.each(read, parts)
    below = files.each(read, _located([path for _, sidecars in top for path in sidecars], files))
    return pa.concat_tables(table for tables, _ in (*top, *below) for table in tables)


def _located(sidecars: Sequence[str], files: SourceFiles) -> list[str]:
    """Return the paths of sidecars, which a checkpoint may name by absolute ones."""
    return [f"{_SIDECARS}/{files.paths.decoded(path).rpartition('/')[2]}" for path in sidecars]


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
    for batch in _raw_batches(file, _COLUMNS):
        yield Actions(
            added=tuple(live_file(add, paths, add["rows"]) for add in _actions(batch, "add", among)),
            removed=tuple(tombstone(remove, paths, remove["rows"]) for remove in _actions(batch, "remove", among)),
            metadata=next(map(read_metadata, _actions(batch, "metaData")), None),
            protocol=next(map(read_protocol, _actions(batch, "protocol")), None),
            sidecars=tuple(sidecar["path"] for sidecar in _actions(batch, "sidecar")),
        )


def _raw_batches(file: NativeFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield these columns, and the number of rows of added files by their statistics."""
    parquet = pq.ParquetFile(file)
    stored = {parquet.schema.column(index).path for index in range(len(parquet.schema))}
    rows = _PARSED_ROWS if _PARSED_ROWS in stored else "add.stats"
    yield from parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[*columns, rows])


def _file_columns(file: NativeFile) -> tuple[list[pa.Table], list[str]]:
    """Return the added files of a part or sidecar as columns, and the paths of its sidecars."""
    tables, sidecars = [NAMED_FILES.empty_table()], list[str]()
    for batch in _raw_batches(file, ("add.path", "add.size", "add.deletionVector", "sidecar.path")):
        sidecars += [sidecar["path"] for sidecar in _actions(batch, "sidecar")]
        added = _struct_rows(batch, "add")
        if added is None or not len(added):
            continue
        if added.column("path").null_count:
            raise InvalidAction("the field `path` is missing or no text")
        paths = spelled_paths(added.column("path"))
        size = pc.fill_null(added.column("size"), 0) if "size" in added.schema.names else pa.repeat(0, len(added))
        live = pa.repeat(True, len(added))  # noqa: FBT003 a value
        columns = [paths, _vector_ids(added), size, pa.array(_rows(added), pa.int64()), live]
        tables.append(pa.table(columns, names=NAMED_FILES.names).cast(NAMED_FILES))
    return tables, sidecars


def _vector_ids(added: pa.RecordBatch) -> pa.Array:
    """Return the id of each file's deletion vector, as `read_vector` makes it; empty without one."""
    if "deletionVector" not in added.schema.names:
        return pa.repeat("", len(added))
    vectors = added.column("deletionVector")
    kind, stored, offset = (pc.struct_field(vectors, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    place = pc.fill_null(pc.binary_join_element_wise("", pc.cast(offset, pa.string()), "@"), "")
    return pc.fill_null(pc.binary_join_element_wise(kind, stored, place, ""), "")


def _struct_rows(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch | None:
    """Return the actions of this kind, a row each; None if the file has no such column."""
    if kind not in batch.schema.names:
        return None
    column = batch.column(kind)
    return pa.RecordBatch.from_struct_array(column.filter(column.is_valid()))


def _actions(batch: pa.RecordBatch, kind: str, among: Collection[str] | None = None) -> Iterator[RawAction]:
    """Yield the actions of this kind, with the stored `rows` in place of their statistics; NULL fields are left out.

    `among`: of files, those with these paths are enough.
    """
    actions = _struct_rows(batch, kind)
    if actions is None:
        return
    if among is not None:
        actions = actions.filter(may_be_among(actions.column("path"), among))
    fields = {name: actions.column(name) for name in actions.schema.names if not name.startswith("stats")}
    known = {name: values.to_pylist() for name, values in fields.items() if values.null_count < len(values)}
    known["rows"] = _rows(actions)
    yield from (dict(zip(known, values, strict=True)) for values in zip(*known.values(), strict=True))


def may_be_among(paths: pa.Array | pa.ChunkedArray, wanted: Collection[str]) -> pa.Array | pa.ChunkedArray:
    """Return for each path of the log whether it may be one of these, which may be decoded, or without `.` segments."""
    return pc.or_(pc.invert(_is_plain(paths)), pc.is_in(paths, pa.array(wanted, paths.type)))


def spelled_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the paths of the log as `spelled` does, without Python's time for those that stay the same."""
    is_same = pc.all(_is_plain(paths), min_count=0).as_py()
    return paths if is_same else pa.array(map(spelled, paths.to_pylist()), paths.type)


def _is_plain(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return for each path of the log whether it is decoded, relative, and without `.` segments."""
    return pc.invert(pc.match_substring_regex(paths, "[%:]|^/|//|\\./"))


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
