"""One mirrored table: a Delta table whose commits record the last applied landing file, and the rows that files change.

The net effect of consecutive landing files is computed column by column. Per key the last operation other than an
insert decides (reference `landing-zone` §4.13, §4.15): earlier rows are deleted, its own row remains unless it is a
delete, and all later inserts remain, duplicates included.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from mirror_assets.markers import Marker
from mirror_assets.standin.errors import MIRROR_UNREADABLE, first_line
from mirror_assets.standin.landed_file import REQUIRED, LandedFile, MirrorColumns, aligned, canonical_type

_FILE_ROWS = 1_000_000
_GROUP_ROWS = 250_000
_TIDY_EVERY = 100
# Like Fabric, keep replaced files for a day (reference `landing-zone` §4.39), for readers of older versions.
_SETTINGS = {"delta.deletedFileRetentionDuration": "interval 1 days"}


@dataclass(frozen=True)
class Applied:
    """The last applied landing file, and the operations and bytes processed up to it."""

    number: int = 0
    rows: int = 0
    bytes: int = 0


class MirrorTable:
    """The Delta table at `path` that mirrors the table folder with this identity; ignores a table of another folder.

    Each commit has the counters as Delta transactions (`txn`), so a crash can't apply a landing file twice.
    """

    def __init__(self, path: Path, identity: str) -> None:
        """Open the table, if it exists. Raises MirrorUnreadable."""
        self._path, self._identity = path, identity
        self._table = self._open()

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(str(self._path))
        except TableNotFoundError:
            return None
        except DeltaError as error:
            raise MIRROR_UNREADABLE(path=str(self._path), why=first_line(error)) from None

    @property
    def exists(self) -> bool:
        """Whether a table exists at `path` that mirrors this folder."""
        return self._table is not None and self._table.transaction_version(self._identity) is not None

    @property
    def applied(self) -> Applied:
        """The counters in the table's log; zeros if the table doesn't exist."""
        if self._table is None or not self.exists:
            return Applied()
        numbers = [self._table.transaction_version(name) or 0 for name in self._transactions]
        return Applied(*numbers)

    @property
    def columns(self) -> MirrorColumns | None:
        """The table's columns, or None before the first file."""
        if self._table is None:
            return None
        fields = list(pa.schema(self._table.schema()))
        schema = pa.schema([pa.field(field.name, canonical_type(field.type) or field.type) for field in fields])
        return MirrorColumns(schema, frozenset(f.name for f in fields if REQUIRED.encode() in (f.metadata or {})))

    @property
    def rows(self) -> int:
        """The number of rows, from the Delta log."""
        return self._table.count() if self._table else 0

    @property
    def _transactions(self) -> tuple[str, str, str]:
        return (self._identity, f"{self._identity}/rows", f"{self._identity}/bytes")

    def apply(self, changes: NetChanges, columns: MirrorColumns, applied: Applied) -> None:
        """Apply the changes and record `applied`, in one commit."""
        counters = (applied.number, applied.rows, applied.bytes)
        commit = CommitProperties(app_transactions=list(map(Transaction, self._transactions, counters)))
        if self._table is None:
            added = write_files(self._path, iter([changes.rows]), columns.schema)
            create_table_with_add_actions(
                str(self._path), _delta_schema(columns), added, configuration=_SETTINGS, commit_properties=commit
            )
        else:
            added, removed = self._rewrite(self._table, changes, columns.schema)
            self._add_columns(self._table, columns)
            schema = _delta_schema(columns)
            self._table.create_write_transaction([*added, *removed], "append", schema, commit_properties=commit)
        self._table = self._open()

    def tidy(self) -> None:
        """At every hundredth version, compact small files and vacuum."""
        if self._table and self._table.version() % _TIDY_EVERY == _TIDY_EVERY - 1:
            self._table.optimize.compact()
            self._table.vacuum(dry_run=False)

    def _rewrite(
        self, table: DeltaTable, changes: NetChanges, schema: pa.Schema
    ) -> tuple[list[AddAction], list[RemoveAction]]:
        """Write the new rows, and the remaining rows of files that lose some; return what to add and to remove."""
        losses = _losses(self._path, _files(table), schema, changes)
        remaining = (read_file(self._path, loss.file, schema).filter(loss.remaining) for loss in losses)
        now = time.time_ns() // 1_000_000
        removed = [RemoveAction(loss.file.path, True, now, loss.file.size, {}) for loss in losses]  # noqa: FBT003, their API
        return write_files(self._path, chain(remaining, [changes.rows]), schema), removed

    def _add_columns(self, table: DeltaTable, columns: MirrorColumns) -> None:
        """Add new columns in a commit of their own: all NULL, they are correct even if the data commit fails."""
        known = {field.name for field in table.schema().fields}
        new = [field for field in _delta_schema(columns).fields if field.name not in known]
        if new:
            table.alter.add_columns(new)


@dataclass(frozen=True)
class _Loss:
    file: MirrorFile
    remaining: pa.ChunkedArray


def _losses(folder: Path, files: Sequence[MirrorFile], schema: pa.Schema, changes: NetChanges) -> list[_Loss]:
    """Find the files with rows of replaced keys, each with a mask of the rows that remain."""
    if changes.replaced is None or not files:
        return []
    key_schema = pa.schema([schema.field(key) for key in changes.replaced.keys])
    keys = pa.concat_tables([read_file(folder, file, key_schema) for file in files])
    remains = pc.is_null(changes.replaced.codes(keys))
    losses, start = [], 0
    for file in files:
        mask = remains.slice(start, file.rows)
        start += file.rows
        if not pc.all(mask, min_count=0).as_py():
            losses.append(_Loss(file, mask))
    return losses


def _files(table: DeltaTable) -> list[MirrorFile]:
    actions = pa.table(table.get_add_actions())
    columns = (actions[name].to_pylist() for name in ("path", "size_bytes", "num_records"))
    return [MirrorFile(path, size, rows) for path, size, rows in zip(*columns, strict=True)]


def _delta_schema(columns: MirrorColumns) -> Schema:
    marked = [f.with_metadata({REQUIRED: "true"}) if f.name in columns.required else f for f in columns.schema]
    return Schema.from_arrow(pa.schema(marked))


@dataclass(frozen=True)
class MirrorFile:
    """One live data file of a mirror table."""

    path: str
    size: int
    rows: int


def read_file(folder: Path, file: MirrorFile, schema: pa.Schema) -> pa.Table:
    """Read these columns of a data file; columns that it does not have are NULL."""
    with pq.ParquetFile(str(folder / file.path)) as parquet:
        present = [name for name in schema.names if name in parquet.schema_arrow.names]
        if present:
            return aligned(parquet.read(columns=present), schema)
        # The file is older than all these columns: its rows still count.
        rows = parquet.metadata.num_rows
        return pa.table([pa.nulls(rows, field.type) for field in schema], schema=schema)


def write_files(folder: Path, rows: Iterator[pa.Table], schema: pa.Schema) -> list[AddAction]:
    """Write the rows in order into files of a million rows, and return Delta's actions that add them."""
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


@dataclass(frozen=True)
class NetChanges:
    """Rows to add, and the keys whose existing rows are deleted; None for a plain append."""

    rows: pa.Table
    replaced: KeySet | None


def net_changes(files: Sequence[LandedFile], keys: Sequence[str], columns: MirrorColumns) -> NetChanges:
    """Compute the files' net effect on a mirror that has applied all earlier files."""
    rows = pa.concat_tables([aligned(file.rows, columns.schema) for file in files])
    if all(file.markers is None for file in files):
        return NetChanges(rows, None)
    markers = pa.chunked_array([chunk for file in files for chunk in _chunks(file)], pa.int8())
    deciding = pc.not_equal(markers, int(Marker.INSERT))
    replaced = KeySet(rows.filter(deciding), keys)
    return NetChanges(rows.filter(_remaining(replaced.codes(rows), markers, deciding)), replaced)


def _chunks(file: LandedFile) -> list[pa.Array]:
    if file.markers is None:
        return [pa.repeat(pa.scalar(int(Marker.INSERT), pa.int8()), file.rows.num_rows)]
    return list(file.markers.chunks)


def _remaining(codes: pa.ChunkedArray, markers: pa.ChunkedArray, deciding: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return for each row whether it exists after all files; the last update, delete or upsert of its key decides."""
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(markers)))
    decisions = pa.table({"code": codes, "position": position}).filter(deciding)
    last = decisions.group_by("code").aggregate([("position", "max")])
    decided = last["position_max"].take(pc.index_in(codes, value_set=last["code"], skip_nulls=True))
    later = pc.fill_null(pc.greater(position, decided), fill_value=True)
    itself = pc.fill_null(pc.equal(position, decided), fill_value=False)
    return pc.or_(later, pc.and_(itself, pc.not_equal(markers, int(Marker.DELETE))))


class KeySet:
    """The distinct keys of some rows, each with a number; NULL equals NULL.

    It numbers the values of the first key column, then for each further column the pairs of the number so far and the
    column's number. So numbers are below the number of rows, and equal only for equal keys.
    """

    def __init__(self, rows: pa.Table, keys: Sequence[str]) -> None:
        """Take the keys of `rows`; `keys` names at least one column."""
        self.keys = tuple(keys)
        column = rows[self.keys[0]]
        self._first = known = pc.unique(column)
        self._steps: list[tuple[str, pa.Array, pa.Array]] = []
        for key in self.keys[1:]:
            values = pc.unique(rows[key])
            column = _paired(_lookup(column, known), rows[key], values)
            known = pc.unique(column)
            self._steps.append((key, values, known))

    def codes(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return for each row the number of its key, or NULL if the key is not in the set."""
        codes = _lookup(rows[self.keys[0]], self._first)
        for key, values, known in self._steps:
            codes = _lookup(_paired(codes, rows[key], values), known)
        return codes


def _lookup(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.cast(pc.index_in(column, value_set=values, skip_nulls=False), pa.int64())


def _paired(codes: pa.ChunkedArray, column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    return pc.add(pc.multiply(codes, pa.scalar(len(values), pa.int64())), _lookup(column, values))
