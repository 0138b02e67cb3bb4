"""A Fabric with a planted fault: the stand-in reads the landing zone through it, or the API reports it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.landing.metadata import declared_keys, metadata_bytes
from mirror_assets.landing.names import landing_name, landing_number
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import Content, FileInfo, LocalStore
from mirror_assets_tests.worlds.fabric.databases import Json, LoopbackDatabase, reported_status

_DAMAGED = b"PAR1 damaged"


@dataclass(frozen=True)
class LandedRows:
    """A landing file as a replicator reads it; `first` has the rows of the table's first file."""

    folder: str
    number: int
    rows: pa.Table
    first: pa.Table

    def with_markers(self, change: Callable[[int], int]) -> pa.Table:
        """The rows with other markers; without a marker column, unchanged."""
        if ROW_MARKER not in self.rows.column_names:
            return self.rows
        markers = [change(marker) for marker in self.rows[ROW_MARKER].to_pylist()]
        at = self.rows.column_names.index(ROW_MARKER)
        return self.rows.set_column(at, ROW_MARKER, pa.array(markers, pa.int32()))

    def without_deletes(self, *, only_beside_inserts: bool = False) -> pa.Table:
        """The rows without deletes."""
        if ROW_MARKER not in self.rows.column_names:
            return self.rows
        markers = self.rows[ROW_MARKER]
        if only_beside_inserts and Marker.INSERT not in markers.to_pylist():
            return self.rows
        return self.rows.filter(pc.not_equal(markers, int(Marker.DELETE)))

    def cast(self, change: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
        """The rows with other types."""
        return self.rows.cast(pa.schema([pa.field(one.name, change(one.type)) for one in self.rows.schema]), safe=False)

    def of_columns(self, keep: Callable[[pa.Field], bool]) -> pa.Table:
        """Some columns of the rows."""
        return self.rows.select([one.name for one in self.rows.schema if keep(one)])


def _same(landed: LandedRows) -> pa.Table:
    return landed.rows


def cut_texts(landed: LandedRows) -> pa.Table:
    rows = landed.rows
    for at, one in enumerate(rows.schema):
        if pa.types.is_string(one.type):
            rows = rows.set_column(at, one, pc.utf8_slice_codeunits(rows[one.name], 0, 8000))
    return rows


def as_before(landed: LandedRows) -> pa.Table:
    """The rows in the types of the first file, whatever becomes of the values."""
    known = {one.name: one.type for one in landed.first.schema}
    schema = pa.schema([pa.field(one.name, known.get(one.name, one.type)) for one in landed.rows.schema])
    return landed.rows.cast(schema, safe=False)


def plain_names(landed: LandedRows) -> pa.Table:
    names = [
        "".join(x if x.isascii() and (x.isalnum() or x == "_") else "_" for x in n) for n in landed.rows.column_names
    ]
    return landed.rows.rename_columns(names)


@dataclass
class PlantedFault:
    """A fault of the replicator, of the API or of the database. By default, everything is as Microsoft says.

    `read` returns the rows that the replicator takes for those of a file, or None if it takes the file for damaged.
    """

    read: Callable[[LandedRows], pa.Table | None] = _same
    first_key_only: bool = False
    jumps_gaps: bool = False
    skips_damaged: bool = False
    keeps_old_rows: bool = False
    no_schemas: bool = False
    applies_nothing: bool = False
    applies_when_stopped: bool = False
    never_stops: bool = False
    report: Callable[[Json], Json] = lambda reported: reported
    refresh_code: str = ""
    old_rows: dict[str, list[tuple[str | None, pa.Table]]] = field(default_factory=dict)


class PlantedZone(LocalStore):
    """The landing zone as the faulty replicator sees it."""

    def __init__(self, root: Path, fault: PlantedFault) -> None:
        super().__init__(root)
        self._fault = fault

    def local_path(self, path: str) -> Path:
        found = super().local_path(path)
        return cast("Path", None) if landing_number(found.name) else found

    def list(self, folder: str) -> list[FileInfo]:
        found = super().list(folder)
        if self._fault.no_schemas and not folder:
            return [info for info in found if not info.name.endswith(".schema")]
        numbers = {number: info for info in found if (number := landing_number(info.name))}
        if not self._fault.jumps_gaps or not numbers:
            return found
        missing = set(range(min(numbers), max(numbers))) - set(numbers)
        some = next(iter(numbers.values()))
        return [*found, *(replace(some, path=f"{folder}/{landing_name(number)}") for number in missing)]

    def read(self, path: str, limit: int) -> Content:
        found = super().read(path, limit)
        keys = declared_keys(found.data) or ()
        if not self._fault.first_key_only or not path.endswith("_metadata.json"):
            return found
        return Content(metadata_bytes(keys[:1]), found.etag)

    def open(self, path: str) -> BinaryIO:
        number = landing_number(path.rpartition("/")[2])
        if not number:
            return super().open(path)
        rows = self._faulty(path.rpartition("/")[0], number)
        return io.BytesIO(_DAMAGED if rows is None else _parquet(rows))

    def _faulty(self, folder: str, number: int) -> pa.Table | None:
        first, rows = self._rows(folder, 1), self._rows(folder, number)
        if rows is None and first is not None:
            is_there = self.head(f"{folder}/{landing_name(number)}") is not None
            return first[:0] if self._fault.skips_damaged or not is_there else None
        if rows is None or first is None:
            return None
        if number == 1 and self._fault.keeps_old_rows:
            before, identity = self._fault.old_rows.setdefault(folder, []), self.folder_identity(folder)
            old = [table for known, table in before if known != identity]
            before.append((identity, rows))
            rows = pa.concat_tables([*old, rows])
        return self._fault.read(LandedRows(folder, number, rows, first))

    def _rows(self, folder: str, number: int) -> pa.Table | None:
        """The rows of a file, wherever the replicator has moved it; None if it is damaged or missing."""
        for place in (folder, f"{folder}/_ProcessedFiles"):
            path = self._path(f"{place}/{landing_name(number)}")
            if path.exists():
                try:
                    return pq.ParquetFile(path).read()
                except pa.ArrowException:
                    return None
        return None

    def _path(self, path: str) -> Path:
        return super().local_path(path)


def _parquet(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


class PlantedDatabase(LoopbackDatabase):
    """A mirrored database that can't be stopped."""

    def stop(self) -> None:
        """Do nothing."""


class PlantedFabric:
    """A landing zone on a disk, the stand-in that reads it through the fault, and the database that reports it."""

    def __init__(self, root: Path, fault: PlantedFault) -> None:
        (root / "zone").mkdir()
        self._fault, self.mirror = fault, root / "mirror"
        self.store = LocalStore(root / "zone")
        self.replicator = LocalReplicator(PlantedZone(root / "zone", fault), self.mirror)
        kind = PlantedDatabase if fault.never_stops else LoopbackDatabase
        self.database = kind("sales", state="Running", tables=self._tables, replay=self.replay)

    def poll(self) -> None:
        """Apply what has landed, unless mirroring is stopped."""
        is_running = self.database.state == "Running" or self._fault.applies_when_stopped
        if is_running and not self._fault.applies_nothing:
            self.replicator.poll()

    def replay(self) -> None:
        """Forget what was applied, as Fabric does when mirroring is started after a stop."""
        shutil.rmtree(self.mirror, ignore_errors=True)

    def _tables(self) -> Sequence[Json]:
        reported = [self._fault.report(one) for one in map(reported_status, self.replicator.status())]
        names = [f"{one['sourceSchemaName']}.{one['sourceTableName']}" for one in reported]
        self.database.refusals = dict.fromkeys(names, self._fault.refresh_code) if self._fault.refresh_code else {}
        return reported
