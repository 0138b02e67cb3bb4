"""Reads a version of a table with deltalake (delta-rs), without replaying its log in Python.

Statistics of columns are bounds that the log proves: the maximum of NULLs and of different values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mirror_assets.lakes.access import Access
from mirror_assets.lakes.errors import SOURCE_UNREADABLE
from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.errors import LogGap
from mirror_assets.source.read_errors import translated
from mirror_assets.source.schema import canonical

# Writers shorten longer texts in statistics.
_WHOLE_TEXT = 32


def load_table(access: Access, version: int | None = None) -> DeltaTable:
    """Open the table at a version, or at its newest one. Raises deltalake's errors."""
    try:
        return DeltaTable(access.uri, version=version, storage_options=dict(access.storage_options()))
    except ValueError as error:  # where values of the log don't fit their columns
        raise DeltaError(str(error)) from error


def load_version(table: DeltaTable, version: int) -> None:
    """Open another version of the table. Raises deltalake's errors."""
    try:
        table.load_as_version(version)
    except ValueError as error:
        raise DeltaError(str(error)) from error


def newest_metadata(access: Access) -> Metadata:
    """Return the metadata of the table at its newest version, without reading its list of files.

    Raises SourceNotDelta, SourceUnreadable and other SettingErrors, and SOURCE_UNAVAILABLE (RetryError).
    """
    try:
        with translated(access.uri):
            return metadata_of(load_table(access))
    except (LogGap, FileNotFoundError) as gap:
        raise SOURCE_UNREADABLE(uri=access.uri, why=str(gap)) from gap


def metadata_of(table: DeltaTable) -> Metadata:
    """Return the metadata of the opened version."""
    raw = table.metadata()
    schema = canonical(table.schema().to_json())
    return Metadata(str(raw.id), schema, raw.configuration, tuple(raw.partition_columns))


def protocol_of(table: DeltaTable) -> Protocol:
    """Return the protocol of the opened version."""
    raw = table.protocol()
    reading, writing = raw.reader_features or [], raw.writer_features or []
    return Protocol(raw.min_reader_version, raw.min_writer_version, frozenset([*reading, *writing]), frozenset(reading))


def size_of(table: DeltaTable) -> tuple[int, int, int | None]:
    """Return the number of live files of the opened version, their bytes, and their stored rows, hidden ones included.

    The rows are None unless the statistics of every file have a row count.
    """
    adds = _add_actions(table)
    size: int = pc.sum(adds["size_bytes"], min_count=0).as_py()
    rows: int = pc.sum(adds["num_records"], min_count=0).as_py()
    return adds.num_rows, size, rows if adds["num_records"].null_count == 0 else None


def paths_of(table: DeltaTable) -> list[str]:
    """Return the paths of the live files of the opened version, spelled as in the log."""
    found: list[str] = _add_actions(table)["path"].to_pylist()
    return found


def live_files(access: Access, version: int) -> tuple[pa.Table, Protocol]:
    """Return `path`, spelled as in the log, and `num_records` of the live files of a version, and its protocol.

    It opens the version directly, not the newest one first. Raises deltalake's errors.
    """
    table = load_table(access, version)
    return _add_actions(table).select(("path", "num_records")), protocol_of(table)


def statistics_of(table: DeltaTable) -> list[FileStatistics]:
    """Return the statistics of each live file; kinds that no file has are empty."""
    adds = _add_actions(table)
    rows = adds["num_records"].to_pylist()
    kinds: list[list[dict[str, Any]]] = [
        _countable(adds[name]) if name in adds.column_names else [{}] * len(rows)
        for name in ("null_count", "min", "max", "partition")
    ]
    return [FileStatistics(*one) for one in zip(rows, *kinds, strict=True)]


def _countable(statistics: pa.ChunkedArray) -> list[dict[str, Any]]:
    """Return the values by column, days as numbers: Python's dates end with the year 9999.

    Timestamps are bytes, which can be distinguished but not counted: statistics cut them to milliseconds.
    """
    values = dict[str, list[Any]]()
    for index in range(statistics.type.num_fields):
        column = pc.struct_field(statistics, index)
        if pa.types.is_date(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64()).cast(pa.string()).cast(pa.binary())
        is_struct = pa.types.is_struct(column.type)  # has statistics of its members alone, among them dates
        values[statistics.type.field(index).name] = [{}] * len(column) if is_struct else column.to_pylist()
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _add_actions(table: DeltaTable) -> pa.Table:
    """Return the add actions of the live files; `pa.table` would import pandas, which takes a third of a second."""
    return pa.RecordBatchReader.from_stream(table.get_add_actions()).read_all()


@dataclass(frozen=True)
class ColumnStatistics:
    """Bounds for a top-level column of one version, None if unknown. Rows that deletion vectors hide are counted."""

    name: str
    nulls_at_most: int | None
    distinct_at_most: int | None


@dataclass(frozen=True)
class FileStatistics:
    """The statistics of one live file, by the columns' physical names; `partition` is by their logical ones."""

    rows: int | None
    nulls: Mapping[str, Any]
    least: Mapping[str, object]
    most: Mapping[str, object]
    partition: Mapping[str, object]


def column_statistics(name: str, physical: str, files: Sequence[FileStatistics]) -> ColumnStatistics:
    """Return the bounds that the files' statistics prove for the column."""
    if any(name in file.partition for file in files):
        values = [file.partition.get(name) for file in files]
        rows = [file.rows if value is None else 0 for file, value in zip(files, values, strict=True)]
        return ColumnStatistics(name, _sum(rows), len({value for value in values if value is not None}))
    nulls = [file.nulls.get(physical) for file in files]
    if any(isinstance(count, Mapping) for count in nulls):  # a struct: only its members have statistics
        return ColumnStatistics(name, None, None)
    return ColumnStatistics(name, _sum(nulls), _distinct(physical, files))


def _distinct(column: str, files: Sequence[FileStatistics]) -> int | None:
    """Return the smaller of two bounds: the values between the ends of all files, and the sum over the files."""
    known = [file for file in files if file.rows is None or file.nulls.get(column) != file.rows]
    ends: list[Any] = [end for file in known for end in (file.least.get(column), file.most.get(column))]
    within = [(file.rows, _between(file.least.get(column), file.most.get(column))) for file in known]
    by_file = _sum([min((bound for bound in bounds if bound is not None), default=None) for bounds in within])
    whole = None if None in ends else _between(min(ends), max(ends)) if ends else 0
    return min((bound for bound in (whole, by_file) if bound is not None), default=None)


def _between(least: object, most: object) -> int | None:
    """Return the number of values from the least to the most, both included; None for types that can't be counted."""
    if isinstance(least, int) and isinstance(most, int):
        return int(most) - int(least) + 1
    if isinstance(least, Decimal) and isinstance(most, Decimal):
        exponent = min(int(number.as_tuple().exponent) for number in (least, most))
        return int((most - least).scaleb(-exponent)) + 1
    if isinstance(least, str) and least == most and len(least) < _WHOLE_TEXT:
        return 1
    return None


def _sum(values: Sequence[int | None]) -> int | None:
    """Return the sum, or None when a part of it isn't known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
