"""Checks on the staged parts that footers and single columns answer: presence, markers, schema, counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets.audit.finding import CheckResult
from mirror_assets.audit.key_codes import Numbers
from mirror_assets.audit.types import arrow_type
from mirror_assets.landing.format import Column, SliceRecord
from mirror_assets.landing.parts import count_markers, found_parts
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.storage import Store

_SAMPLES = 5
_VALID_MARKERS = pa.array([int(marker) for marker in Marker], pa.int32())


@dataclass(frozen=True)
class StagedSlice:
    """A staged slice in its store, and the store where its parts' bytes are read: the same, or copies nearer by."""

    store: Store
    record: SliceRecord
    copies: Store

    def path(self, part: str) -> str:
        """The part's path in the store."""
        return self.record.folder.part(part)

    @property
    def paths(self) -> tuple[str, ...]:
        """All parts, in order."""
        return tuple(self.path(part.name) for part in self.record.parts)

    @property
    def rows_before(self) -> dict[str, int]:
        """The number of rows in all parts before each, by the part's name, in order."""
        before = accumulate((part.markers.total for part in self.record.parts), initial=0)
        return {part.name: rows for part, rows in zip(self.record.parts, before, strict=False)}

    @property
    def bounds(self) -> Numbers:
        """The number of rows in all parts up to the end of each, in order: the places at which parts end."""
        return np.cumsum([part.markers.total for part in self.record.parts], dtype=np.int64)

    @contextmanager
    def open(self, path: str) -> Iterator[pq.ParquetFile]:
        """The part's Parquet reader."""
        with self.copies.open(path) as source, pq.ParquetFile(source) as file:
            yield file


def parts_unchanged(staged: StagedSlice) -> CheckResult:
    """Every part is the file that was staged: its ETag is the recorded one, which no content needs to be read for."""
    found = found_parts(staged.store, staged.record)
    problems = []
    for part, path in zip(staged.record.parts, staged.paths, strict=True):
        if path not in found:
            problems.append(f"{path} is missing")
        elif found[path] != part.etag:
            problems.append(f"{path} was changed after it was staged")
    return CheckResult("parts_unchanged", tuple(problems), {"parts": len(staged.paths)})


def key_presence(staged: StagedSlice) -> CheckResult:
    """Key columns are there and hold no NULL: footers answer, a column is read only where they say too little."""
    problems = [problem for path in staged.paths for problem in _key_problems(staged, path)]
    return CheckResult("key_presence", tuple(problems), {"parts": len(staged.paths)})


def _key_problems(staged: StagedSlice, path: str) -> list[str]:
    problems = []
    with staged.open(path) as file:
        for key in staged.record.keys:
            if key not in file.schema_arrow.names:
                problems.append(f"{path} has no key column {key!r}")
            elif nulls := _null_count(file, key):
                rows = _null_rows(file, key)
                problems.append(f"{path}: key column {key!r} is NULL in {nulls} rows, such as {rows}")
    return problems


def _null_count(file: pq.ParquetFile, name: str) -> int:
    index = file.schema_arrow.get_field_index(name)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    statistics = [group.column(index).statistics for group in groups]
    if all(known is not None and known.has_null_count for known in statistics):
        return sum(known.null_count for known in statistics)
    return int(file.read([name]).column(name).null_count)


def _null_rows(file: pq.ParquetFile, name: str) -> str:
    """Sample rows with a NULL key: row numbers with the first columns' values."""
    rows = pc.indices_nonzero(file.read([name]).column(name).is_null()).slice(0, _SAMPLES)
    return ", ".join(f"row {number}" for number in rows.to_pylist())


def marker_values(staged: StagedSlice) -> CheckResult:
    """A changes slice has `__rowMarker__` as its last column, int32, in {0, 1, 2, 4}; one of only inserts has none."""
    problems = []
    for part, path in zip(staged.record.parts, staged.paths, strict=True):
        with staged.open(path) as file:
            problems += _marker_problems(staged, path, file)
        if not problems and count_markers(staged.copies, path) != part.markers:
            problems.append(f"{path} no longer has the rows by marker of its slice record")
    return CheckResult("marker_values", tuple(problems), staged.record.markers.model_dump())


def _marker_problems(staged: StagedSlice, path: str, file: pq.ParquetFile) -> list[str]:
    names = file.schema_arrow.names
    kind = staged.record.kind
    if not kind.has_markers:
        return [f"{path}: a slice of kind {kind.value} must have no {ROW_MARKER}"] if ROW_MARKER in names else []
    if names[-1] != ROW_MARKER or names.count(ROW_MARKER) != 1:
        return [f"{path}: {ROW_MARKER} is not its last column"]
    if file.schema_arrow.field(ROW_MARKER).type != pa.int32():
        return [f"{path}: {ROW_MARKER} is not int32"]
    markers = file.read([ROW_MARKER]).column(ROW_MARKER)
    wrong = pc.invert(pc.is_in(markers, value_set=_VALID_MARKERS))
    rows = pc.indices_nonzero(wrong).slice(0, _SAMPLES).to_pylist()
    return [f"{path}: {ROW_MARKER} is {markers[rows[0]].as_py()} in row {rows[0]}"] if rows else []


def schema_compatibility(staged: StagedSlice, landed: tuple[Column, ...], dropped: tuple[str, ...] = ()) -> CheckResult:
    """Every part has exactly the slice's columns, with their types; none has landed with another type, or was dropped.

    A dropped column that came back would stand beside its old values in rows that nobody has touched since.
    """
    known = {column.name: column.type for column in landed}
    problems = [
        f"column {column.name!r} is {column.type}, and {known[column.name]} has landed before"
        for column in staged.record.columns
        if known.get(column.name, column.type) != column.type
    ]
    names = {column.name for column in staged.record.columns}
    problems += [f"column {name!r} was dropped, and the mirror has its old values" for name in dropped if name in names]
    for path in staged.paths:
        with staged.open(path) as file:
            problems += _schema_problems(staged, path, file)
    return CheckResult("schema_compatibility", tuple(problems), {"columns": len(staged.record.columns)})


def _schema_problems(staged: StagedSlice, path: str, file: pq.ParquetFile) -> list[str]:
    fields = [field for field in file.schema_arrow if field.name != ROW_MARKER]
    names, wanted = [field.name for field in fields], [column.name for column in staged.record.columns]
    if names != wanted:
        return [f"{path} has columns {names}, not {wanted}"]
    problems = []
    for index, (field, column) in enumerate(zip(fields, staged.record.columns, strict=True)):
        parquet = file.schema.column(index)
        if field.type != arrow_type(column.type):
            problems.append(f"{path}: column {field.name!r} is {field.type}, not {column.type}")
        elif parquet.physical_type == "INT96":
            problems.append(f"{path}: column {field.name!r} is INT96, which the landing zone does not take")
        elif parquet.max_definition_level == 0 and field.name not in staged.record.keys:
            problems.append(f"{path}: column {field.name!r} is REQUIRED; it could never be dropped")
    return problems


def row_counts(staged: StagedSlice) -> CheckResult:
    """Every row of the feed is in a part: new rows are inserts or updates, old rows updates or deletes."""
    read, written = staged.record.read, staged.record.markers
    new, old = read.insert + read.update_postimage, read.delete + read.update_preimage
    problems = []
    if written.inserts + written.updates != new:
        problems.append(f"{written.inserts + written.updates} rows with new values were written, {new} were read")
    if written.updates + written.deletes != old:
        problems.append(f"{written.updates + written.deletes} rows replace old ones, {old} were read")
    return CheckResult("row_counts", tuple(problems), {"read": read.total, "written": written.total})
