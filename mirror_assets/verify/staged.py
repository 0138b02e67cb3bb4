"""Check staged parts by ETags, footers and single columns: presence, markers, schema."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.landing.format import Column, MarkerCounts, SliceKind, SliceRecord, StagedPart
from mirror_assets.landing.recover import found_parts
from mirror_assets.landing.steps import drive
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.redaction import shown_key
from mirror_assets.spark_api import arrow_frame, file_metadata
from mirror_assets.verify.check_result import CheckResult
from mirror_assets.verify.landed_values import arrow_type
from mirror_assets.zones import Store

Numbers = npt.NDArray[np.int64]
# Columns beside those of the parts.
PART_NUMBER, ROW_INDEX = "__part_number__", "__row_index__"
_FILE, _PART = "__file__", "__part__"
_SAMPLES = 5
_VALID_MARKERS = pa.array([int(marker) for marker in Marker], pa.int32())


@dataclass(frozen=True)
class StagedSlice:
    """A staged slice in its store, and the store that its parts are read from: the same, or copies on this machine."""

    store: Store
    record: SliceRecord
    copies: Store

    def path(self, part: str) -> str:
        """Return the part's path in the store."""
        return self.record.folder.part(part)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all parts, in order."""
        return tuple(self.path(part.name) for part in self.record.parts)

    @property
    def rows_before(self) -> dict[str, int]:
        """By each part's name, in order: the number of rows in all parts before it."""
        before = accumulate((part.markers.total for part in self.record.parts), initial=0)
        return {part.name: rows for part, rows in zip(self.record.parts, before, strict=False)}

    @property
    def bounds(self) -> Numbers:
        """For each part, in order: the place where it ends, counted in rows from the first part's begin."""
        return np.cumsum([part.markers.total for part in self.record.parts], dtype=np.int64)

    @contextmanager
    def open(self, path: str) -> Iterator[pq.ParquetFile]:
        """Open a part's Parquet reader."""
        with self.copies.open(path) as source, pq.ParquetFile(source) as file:
            yield file

    def read_rows(self, places: Numbers, columns: Sequence[str]) -> list[dict[str, object]]:
        """Return these columns of the rows at these places, which are in order, as `readable_rows` does."""
        rows: list[dict[str, object]] = []
        starts = np.searchsorted(places, [0, *self.bounds])
        for path, before, (first, end) in zip(self.paths, self.rows_before.values(), pairwise(starts), strict=True):
            if first < end:
                with self.open(path) as file:
                    rows += readable_rows(file.read(list(columns)).take(pa.array(places[first:end] - before)))
        return rows

    def spark_rows(self, spark: SparkSession, numbers: Iterable[int]) -> DataFrame:
        """Return the rows of all parts, with the number of their part, of one for each part in order, and their index.

        The names of these two columns are `PART_NUMBER` and `ROW_INDEX`.
        """
        # A path may have characters of a pattern, such as `[`.
        rows = spark.read.option("__globPaths__", "false").parquet(*map(self.copies.spark_path, self.paths))
        metadata = {_FILE: file_metadata(rows, "file_name"), ROW_INDEX: file_metadata(rows, "row_index")}
        names = [part.name.rpartition("/")[2] for part in self.record.parts]
        parts = arrow_frame(spark, pa.table({_PART: names, PART_NUMBER: pa.array(numbers, pa.int64())}))
        # Spark searches a constant map from its begin for each row, and joins by texts in four times the time.
        hashed = parts.select(F.expr(f"xxhash64({_PART})").alias(_PART), PART_NUMBER)
        return rows.withColumns(metadata).join(F.broadcast(hashed), F.expr(f"xxhash64({_FILE}) = {_PART}"), "left")

    def describe_place(self, place: int) -> str:
        """Return the row's number and part as text."""
        part, before = [found for found in self.rows_before.items() if found[1] <= place][-1]
        return f"row {place - before} of {part}"


def parts_unchanged(staged: StagedSlice) -> CheckResult:
    """Check that every part has its recorded ETag. Reads no content."""
    found = drive(found_parts(staged.record), staged.store)
    problems = []
    for part, path in zip(staged.record.parts, staged.paths, strict=True):
        if path not in found:
            problems.append(f"{path} is missing")
        elif found[path] != part.etag:
            problems.append(f"{path} was changed after it was staged")
    return CheckResult("parts_unchanged", tuple(problems), {"parts": len(staged.paths)})


def key_presence(staged: StagedSlice) -> CheckResult:
    """Check that key columns exist and hold no NULL. Reads a column only where footers have no NULL counts.

    The problems name commits, rows of parts, and the values of the other key columns; no value of a column that is no
    key. The metadata has the first staged file.
    """
    problems, metadata = list[str](), dict[str, int | float | str]({"parts": len(staged.paths)})
    counts, samples = Counter[tuple[str, str]](), defaultdict[tuple[str, str], list[str]](list)
    for part, path in zip(staged.record.parts, staged.paths, strict=True):
        with staged.open(path) as file:
            for key in staged.record.keys:
                if key not in file.schema_arrow.names:
                    problems.append(f"{path} has no key column {key!r}")
                elif nulls := _null_count(file, key):
                    place = (_commits(staged.record, part), key)
                    counts[place] += nulls
                    if len(samples[place]) < _SAMPLES:
                        samples[place] += _null_rows(file, part.name, key, staged.record.keys)
                    metadata.setdefault("first_file", path)
    for (commits, key), count in counts.items():
        rows, such = "1 row" if count == 1 else f"{count:,} rows", samples[commits, key][:_SAMPLES]
        as_in = f", such as {', '.join(such)}" if such else ""
        problems.append(f"the key column {key!r} is NULL in {rows} of {commits}{as_in}")
    return CheckResult("key_presence", tuple(problems), metadata)


def _commits(record: SliceRecord, part: StagedPart) -> str:
    if record.kind is SliceKind.SNAPSHOT:
        return f"version {record.slice.last}"
    first, last = part.first_version or record.slice.first, part.last_version or record.slice.last
    return f"commit {first}" if first == last else f"commits {first} to {last}"


def _null_count(file: pq.ParquetFile, name: str) -> int:
    index = file.schema_arrow.get_field_index(name)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    statistics = [group.column(index).statistics for group in groups]
    if all(known is not None and known.has_null_count for known in statistics):
        return sum(known.null_count for known in statistics)
    return int(file.read([name]).column(name).null_count)


def _null_rows(file: pq.ParquetFile, part: str, name: str, keys: Sequence[str]) -> list[str]:
    """Return some rows with a NULL key as text: their numbers, and their other key columns if there are any."""
    rows = pc.indices_nonzero(file.read([name]).column(name).is_null()).slice(0, _SAMPLES)
    others = [key for key in keys if key != name and key in file.schema_arrow.names]
    places = [f"row {row} of {part}" for row in rows.to_pylist()]
    if not others:
        return places
    shown = map(shown_key, readable_rows(file.read(others).take(rows)))
    return [f"{place} {key}" for place, key in zip(places, shown, strict=True)]


def marker_values(staged: StagedSlice) -> CheckResult:
    """Check `__rowMarker__`: the last column, int32, in {0, 1, 2, 4}; absent where a slice has only inserts."""
    problems = []
    for part, path in zip(staged.record.parts, staged.paths, strict=True):
        with staged.open(path) as file:
            problems += _marker_problems(staged, part, file)
    return CheckResult("marker_values", tuple(problems), staged.record.markers.model_dump())


def _marker_problems(staged: StagedSlice, part: StagedPart, file: pq.ParquetFile) -> list[str]:
    names, path, kind = file.schema_arrow.names, staged.path(part.name), staged.record.kind
    if not kind.has_markers:
        if ROW_MARKER in names:
            return [f"{path}: a slice of kind {kind.value} must have no {ROW_MARKER}"]
        return _count_problems(path, part, {Marker.INSERT: file.metadata.num_rows})
    if names[-1] != ROW_MARKER or names.count(ROW_MARKER) != 1:
        return [f"{path}: {ROW_MARKER} is not its last column"]
    if file.schema_arrow.field(ROW_MARKER).type != pa.int32():
        return [f"{path}: {ROW_MARKER} is not int32"]
    markers = file.read([ROW_MARKER]).column(ROW_MARKER)
    wrong = pc.invert(pc.is_in(markers, value_set=_VALID_MARKERS))
    if rows := pc.indices_nonzero(wrong).slice(0, 1).to_pylist():
        return [f"{path}: {ROW_MARKER} is {markers[rows[0]].as_py()} in row {rows[0]}"]
    return _count_problems(path, part, {one: pc.sum(pc.equal(markers, int(one))).as_py() or 0 for one in Marker})


def _count_problems(path: str, part: StagedPart, counted: Mapping[Marker, int]) -> list[str]:
    inserts, updates, deletes, upserts = (counted.get(marker, 0) for marker in Marker)
    found = MarkerCounts(inserts=inserts, updates=updates, deletes=deletes, upserts=upserts)
    return [] if found == part.markers else [f"{path} no longer has the rows by marker of its slice record"]


def schema_compatibility(staged: StagedSlice, landed: tuple[Column, ...], dropped: tuple[str, ...] = ()) -> CheckResult:
    """Check that every part has exactly the slice's columns and types, and that these fit what has landed before.

    A column must not have landed with another type, nor return after it was dropped: in rows that have not changed
    since, the mirror would show its old values.
    """
    known = {column.name: column.type for column in landed}
    problems = [
        f"column {column.name!r} is {column.type}, and {known[column.name]} has landed before"
        for column in staged.record.columns
        if known.get(column.name, column.type) != column.type
    ]
    spelled = {name.lower(): name for name in known}
    problems += [
        f"column {column.name!r} differs from {spelled[column.name.lower()]!r}, which has landed, in case only"
        for column in staged.record.columns
        if spelled.setdefault(column.name.lower(), column.name) != column.name
    ]
    names = {column.name for column in staged.record.columns}
    problems += [
        f"column {name!r} was dropped, and the mirror still has its old values" for name in dropped if name in names
    ]
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
            problems.append(f"{path}: column {field.name!r} is INT96, which the landing zone does not accept")
        elif parquet.max_definition_level == 0 and field.name not in staged.record.keys:
            problems.append(f"{path}: column {field.name!r} is REQUIRED; a REQUIRED column can't be dropped later")
    return problems


def readable_rows(rows: pa.Table) -> list[dict[str, object]]:
    r"""Return the rows; different values stay different.

    Dates and timestamps are texts, because Python has none before year 1 and after 9999. Bytes of a text that aren't
    UTF-8 are shown as `\xff`.
    """
    columns = [_values(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_timestamp(kind):  # Arrow counts wrong with the extremes of one with a zone
        return list(column.cast(pa.timestamp(kind.unit)).cast(pa.string()).to_pylist())
    if pa.types.is_date(kind):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_string(kind):
        texts = column.cast(pa.binary()).to_pylist()
        return [None if text is None else text.decode(errors="backslashreplace") for text in texts]
    return list(column.to_pylist())
