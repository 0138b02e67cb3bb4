"""Bounds for the columns of a table that the statistics of its log prove: the most NULLs and different values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.lakes.errors import SourceUnreadable
from mirror_assets.source.commits import SourceState
from mirror_assets.source.delta_rs import add_actions, load_table
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.read_errors import translated

# Writers shorten longer texts in statistics.
_WHOLE_TEXT = 32


@dataclass(frozen=True)
class ColumnStatistics:
    """Bounds for a top-level column of one version, None if unknown. Rows that deletion vectors hide are counted."""

    name: str
    nulls_at_most: int | None
    distinct_at_most: int | None


def column_statistics(log: DeltaLog, state: SourceState) -> tuple[ColumnStatistics, ...]:
    """Return the bounds that the statistics of a state's files prove for its columns, by delta-rs. Raises LogGap.

    It can't know the commits of a catalog: no bound is known then.
    """
    fields = state.schema.fields
    if log.is_managed:
        return tuple(ColumnStatistics(field.name, None, None) for field in fields)
    try:
        with translated(log.uri):
            files = _statistics_of(add_actions(load_table(log.access, state.version)))
    except SourceUnreadable:
        return tuple(ColumnStatistics(field.name, None, None) for field in fields)
    return tuple(_of_column(field.name, field.physical_name or field.name, files) for field in fields)


@dataclass(frozen=True)
class _FileStatistics:
    """The statistics of one live file, by the columns' physical names; `partition` is by their logical ones."""

    rows: int | None
    nulls: Mapping[str, Any]
    least: Mapping[str, object]
    most: Mapping[str, object]
    partition: Mapping[str, object]


def _statistics_of(adds: pa.Table) -> list[_FileStatistics]:
    """Return the statistics of each live file; kinds that no file has are empty."""
    rows = adds["num_records"].to_pylist()
    kinds: list[list[dict[str, Any]]] = [
        _countable(adds[name]) if name in adds.column_names else [{}] * len(rows)
        for name in ("null_count", "min", "max", "partition")
    ]
    return [_FileStatistics(*one) for one in zip(rows, *kinds, strict=True)]


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


def _of_column(name: str, physical: str, files: Sequence[_FileStatistics]) -> ColumnStatistics:
    """Return the bounds that the files' statistics prove for the column."""
    if any(name in file.partition for file in files):
        values = [file.partition.get(name) for file in files]
        rows = [file.rows if value is None else 0 for file, value in zip(files, values, strict=True)]
        return ColumnStatistics(name, _sum(rows), len({value for value in values if value is not None}))
    nulls = [file.nulls.get(physical) for file in files]
    if any(isinstance(count, Mapping) for count in nulls):  # a struct: only its members have statistics
        return ColumnStatistics(name, None, None)
    return ColumnStatistics(name, _sum(nulls), _distinct(physical, files))


def _distinct(column: str, files: Sequence[_FileStatistics]) -> int | None:
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
