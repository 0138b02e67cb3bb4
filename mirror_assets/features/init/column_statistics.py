"""Bounds for the columns of a table that the statistics of its log prove: the most NULLs and different values."""

from __future__ import annotations

from collections.abc import Sequence
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
# Statistics of a column are 3 MB as Python's objects for this many files.
_FILES = 10_000


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
            adds = add_actions(load_table(log.access, state.version))
    except SourceUnreadable:
        return tuple(ColumnStatistics(field.name, None, None) for field in fields)
    return tuple(_of_column(field.name, field.physical_name or field.name, adds) for field in fields)


def _of_column(name: str, physical: str, adds: pa.Table) -> ColumnStatistics:
    """Return the bounds that the files' statistics prove for the column; partition values are by logical names."""
    rows, values = adds["num_records"], _statistics(adds, "partition", name)
    if values is not None:
        return ColumnStatistics(name, _sum_of(rows.filter(values.is_null())), len(values.drop_null().unique()))
    nulls = _statistics(adds, "null_count", physical)
    if nulls is not None and pa.types.is_struct(nulls.type):  # only its members have statistics
        return ColumnStatistics(name, None, None)
    unknown = pa.chunked_array([pa.nulls(len(adds))])
    nulls = unknown if nulls is None else nulls
    ends = [_statistics(adds, kind, physical) for kind in ("min", "max")]
    columns = [rows, nulls, *(unknown if end is None else end for end in ends)]
    return ColumnStatistics(name, _sum_of(nulls), _distinct(columns))


def _statistics(adds: pa.Table, kind: str, column: str) -> pa.ChunkedArray | None:
    """Return the column's statistics of this kind, a value for each file; None if no file has any.

    Days are numbers: Python's dates end with the year 9999. Timestamps are bytes, which can be distinguished but not
    counted: statistics cut them to milliseconds.
    """
    if kind not in adds.column_names or adds[kind].type.get_field_index(column) < 0:
        return None
    values = pc.struct_field(adds[kind], adds[kind].type.get_field_index(column))
    if pa.types.is_date(values.type):
        return values.cast(pa.int32())
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.int64()).cast(pa.string()).cast(pa.binary())
    return values


def _distinct(statistics: Sequence[pa.ChunkedArray]) -> int | None:
    """Return the smaller of two bounds: the values between the ends of all files, and the sum over the files.

    `statistics` are rows, NULLs, least and most of each file. Some files at a time are Python's objects.
    """
    ends, by_file = list[Any](), list[int | None]()
    for first in range(0, len(statistics[0]), _FILES):
        batch = zip(*(column.slice(first, _FILES).to_pylist() for column in statistics), strict=True)
        known = [(rows, least, most) for rows, nulls, least, most in batch if rows is None or nulls != rows]
        bounds = [[bound for bound in (rows, _between(a, b)) if bound is not None] for rows, a, b in known]
        by_file.append(_sum([min(found, default=None) for found in bounds]))
        own = [end for _, least, most in known for end in (least, most)]
        ends += [None] if None in own else [min(own), max(own)] if own else []
    whole = None if None in ends else _between(min(ends), max(ends)) if ends else 0
    return min((bound for bound in (whole, _sum(by_file)) if bound is not None), default=None)


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


def _sum_of(values: pa.ChunkedArray) -> int | None:
    """Return the sum, or None when a part of it isn't known."""
    return None if values.null_count else int(pc.sum(values, min_count=0).as_py())
