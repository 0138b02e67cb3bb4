"""Bounds that the statistics of a log prove for columns: the maximum of NULLs and of different values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Writers shorten longer texts in statistics.
_WHOLE_TEXT = 32


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
