"""One mirrored table: a Delta table whose commits record the last applied landing file.

Per key the last operation other than an insert decides (reference `landing-zone` §4.13, §4.15): earlier rows are
deleted, its own row remains unless it is a delete, and all later inserts remain, duplicates included. pyarrow computes
the net effect of consecutive landing files so, and Delta's merge applies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.standin.errors import MIRROR_UNREADABLE, first_line
from mirror_assets.standin.landed_file import REQUIRED, LandedFile, MirrorColumns, canonical_type

_TIDY_EVERY = 100
_SETTINGS = {
    # Like Fabric, keep replaced files for a day (reference `landing-zone` §4.39), for readers of older versions.
    "delta.deletedFileRetentionDuration": "interval 1 days",
    # No minimum and maximum of columns: they leave out NaN, so a reader that filters by them could skip rows.
    "delta.dataSkippingNumIndexedCols": "0",
}


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
        fields = [f.with_metadata({REQUIRED: "true"}) if f.name in columns.required else f for f in columns.schema]
        rows = changes.rows.cast(pa.schema(fields))
        if self._table is not None:
            self._add_columns(self._table, rows.schema)
            if changes.deleted.num_rows:
                _merge(self._table, changes.deleted, rows, commit)
                self._table = self._open()
                if self.applied == applied:
                    return
                rows = rows.slice(0, 0)  # a merge that changes nothing makes no commit, which the counters need
        target = self._table or str(self._path)
        write_deltalake(target, rows, mode="append", configuration=_SETTINGS, commit_properties=commit)
        self._table = self._open()

    def _add_columns(self, table: DeltaTable, columns: pa.Schema) -> None:
        """Add new columns in a commit of their own: all NULL, they are correct even if the data commit fails."""
        known = {field.name for field in table.schema().fields}
        new = [field for field in Schema.from_arrow(columns).fields if field.name not in known]
        if new:
            table.alter.add_columns(new)

    def tidy(self) -> None:
        """At every hundredth version, compact small files and vacuum."""
        if self._table and self._table.version() % _TIDY_EVERY == _TIDY_EVERY - 1:
            self._table.optimize.compact()
            self._table.vacuum(dry_run=False)


def _merge(table: DeltaTable, deleted: pa.Table, rows: pa.Table, commit: CommitProperties) -> None:
    """Delete the rows with these keys and add the new rows, in one commit. NULL equals NULL."""
    source = pa.concat_tables(
        [
            rows.append_column(ROW_MARKER, _repeated(Marker.INSERT, rows.num_rows)),
            deleted.append_column(ROW_MARKER, _repeated(Marker.DELETE, deleted.num_rows)),
        ],
        promote_options="default",
    )
    # Delta's own list of all columns can't have a backtick in a name.
    names = {name: '"' + name.replace('"', '""') + '"' for name in rows.column_names}
    keys = [names[name] for name in deleted.column_names]
    same = " AND ".join(f"(target.{key} IS NOT DISTINCT FROM source.{key})" for key in keys)
    merge = table.merge(
        source,
        f'{same} AND source."{ROW_MARKER}" = {int(Marker.DELETE)}',
        source_alias="source",
        target_alias="target",
        commit_properties=commit,
    )
    new = {name: f"source.{name}" for name in names.values()}
    inserting = merge.when_not_matched_insert(new, predicate=f'source."{ROW_MARKER}" = {int(Marker.INSERT)}')
    inserting.when_matched_delete().execute()


def _repeated(marker: Marker, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(int(marker), pa.int8()), rows)


@dataclass(frozen=True)
class NetChanges:
    """Distinct keys, whose existing rows are deleted, and then rows to add."""

    deleted: pa.Table
    rows: pa.Table


def net_changes(files: Sequence[LandedFile], keys: Sequence[str], columns: MirrorColumns) -> NetChanges:
    """Compute the files' net effect on a mirror that has applied all earlier files."""
    landed = [columns.schema.empty_table(), *(file.rows for file in files)]
    rows = pa.concat_tables(landed, promote_options="default")  # missing columns are NULL
    if all(file.markers is None for file in files):
        return NetChanges(rows.select([]).slice(0, 0), rows)
    chunks = (file.markers.chunks if file.markers else [_repeated(Marker.INSERT, file.rows.num_rows)] for file in files)
    markers = pa.chunked_array([chunk for part in chunks for chunk in part], pa.int8())
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(markers)))
    decision = pc.if_else(pc.not_equal(markers, int(Marker.INSERT)), position, pa.scalar(None, pa.int64()))
    # Numbers as names: a key column may have any other.
    by_key = rows.select(keys).rename_columns([str(number) for number in range(len(keys))])
    by_key = by_key.append_column("position", position).append_column("decision", decision)
    found = by_key.group_by(by_key.column_names[: len(keys)]).aggregate([("position", "list"), ("decision", "max")])
    groups = found["position_list"].combine_chunks()
    of_group = found["decision_max"].take(pc.list_parent_indices(groups))
    last = of_group.take(pc.sort_indices(pc.list_flatten(groups)))  # of each row's key
    itself = pc.and_(pc.equal(position, last), pc.not_equal(markers, int(Marker.DELETE)))
    remains = pc.fill_null(pc.or_(pc.greater(position, last), itself), fill_value=True)
    decided = found.filter(pc.is_valid(found["decision_max"])).select(range(len(keys)))
    return NetChanges(decided.rename_columns(list(keys)), rows.filter(remains))
