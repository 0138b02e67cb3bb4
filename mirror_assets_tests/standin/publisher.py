"""A publisher that lands whatever a test asks for, right or wrong, and reads the mirror back."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from mirror_assets.landing.names import TableName, landing_name
from mirror_assets.markers import ROW_MARKER
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.standin.table_record import TableStatus
from mirror_assets.zones import LocalStore

Value = int | float | str | bytes | bool | None
TABLE = TableName.parse("t")


class Publisher:
    """A landing zone and a mirror below one folder."""

    def __init__(self, root: Path) -> None:
        self.zone = root / "zone"
        self.mirror = root / "mirror"
        self.zone.mkdir()
        self.store = LocalStore(self.zone)

    def replicator(self) -> LocalReplicator:
        return LocalReplicator(self.store, self.mirror)

    def poll(self, name: str = "t") -> TableStatus:
        """Poll once and return this table's status."""
        self.replicator().poll()
        status = self.replicator().table(TableName.parse(name))
        assert status is not None
        return status

    def folder(self, name: str = "t") -> Path:
        return self.zone / TableName.parse(name).folder

    def declare(self, keys: Sequence[str] | None = ("k",), name: str = "t", **more: object) -> None:
        """Write `_metadata.json`, over an older one too."""
        self.folder(name).mkdir(parents=True, exist_ok=True)
        declared = more if keys is None else {"keyColumns": list(keys), **more}
        (self.folder(name) / "_metadata.json").write_text(json.dumps(declared))

    def land(self, number: int, rows: pa.Table, markers: Sequence[int | None] | None = None, name: str = "t") -> Path:
        """Land a file of these rows; markers, if any, in the last column."""
        if markers is not None:
            rows = rows.append_column(ROW_MARKER, pa.array(markers, pa.int32()))
        return self.land_bytes(number, parquet(rows), name)

    def land_bytes(self, number: int, data: bytes, name: str = "t") -> Path:
        path = self.folder(name) / landing_name(number)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        return path

    def recreate(self, name: str = "t", keys: Sequence[str] | None = ("k",)) -> None:
        self.delete(name)
        self.declare(keys, name)

    def delete(self, name: str = "t") -> None:
        shutil.rmtree(self.folder(name))

    def landed(self, name: str = "t", folder: str = "") -> list[str]:
        """Names of the Parquet files in the table folder, or in a folder of it."""
        return sorted(path.name for path in (self.folder(name) / folder).glob("*.parquet"))

    def delta(self, name: str = "t") -> DeltaTable:
        """The mirror table."""
        table = TableName.parse(name)
        return DeltaTable(str(self.mirror / (table.schema or "dbo") / table.table))

    def rows(self, name: str = "t") -> pa.Table:
        """The mirror's rows."""
        return self.delta(name).to_pyarrow_table()

    def files(self, name: str = "t") -> set[str]:
        """The mirror table's live data files."""
        return set(self.delta(name).file_uris())


def parquet(rows: pa.Table) -> bytes:
    """The rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def pairs(*rows: tuple[Value, Value]) -> pa.Table:
    """Rows of the usual test table: `k` bigint, `v` string."""
    keys, values = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string())})


def bag(table: pa.Table) -> Counter[tuple[tuple[str, str], ...]]:
    """The rows as a multiset, whatever their order; `repr` tells NaN, -0.0 and NULL apart."""
    return rows_bag(table.to_pylist())


def rows_bag(rows: Sequence[Mapping[str, object]]) -> Counter[tuple[tuple[str, str], ...]]:
    """The same of plain rows."""
    return Counter(tuple(sorted((name, repr(value)) for name, value in row.items())) for row in rows)
