"""Compares landing files with their source.

Only Delta's public reader and pyarrow read them. The project's code takes no part in the comparison.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

Value = object
# The values of a row by column. A column without a value is left out, because a file may lack it.
Row = tuple[tuple[str, Value], ...]
Rows = Counter[Row]
_MARKER = "__rowMarker__"
_INSERT, _UPDATE, _DELETE, _UPSERT = 0, 1, 2, 4
_FOLDERS = ("", "_ProcessedFiles", "_FilesReadyToDelete")
_SHOWN = "__shown__"
_fresh = itertools.count()


def row(**values: Value) -> Row:
    """A row, to be compared with what was read."""
    return _row(values)


def landed_rows(folder: Path, columns: Iterable[str] | None = None) -> Rows:
    """Apply the landing files of a table folder in their order, by the rules of open mirroring.

    An insert adds a row even if its key exists. An update or upsert replaces the rows of its key. Fails if the file
    numbers have a gap. `columns` limits the rows to these columns.
    """
    metadata = json.loads((folder / "_metadata.json").read_text())
    keys = [str(key) for key in metadata.get("keyColumns", [])]
    default = _UPSERT if metadata.get("isUpsertDefaultRowMarker") else _INSERT
    mirrored: dict[Row, list[dict[str, Value]]] = {}
    for file in landing_files(folder):
        for values in _values(pq.read_table(file)):
            marker = values.pop(_MARKER, default)
            key = _row({name: values.get(name) for name in keys})
            if marker != _INSERT:
                mirrored.pop(key, None)
            if marker != _DELETE:
                mirrored.setdefault(key, []).append(values)
    chosen = None if columns is None else set(columns)
    return Counter(
        _row({name: value for name, value in values.items() if chosen is None or name in chosen})
        for found in mirrored.values()
        for values in found
    )


def rows_of(table: pa.Table, columns: Iterable[str]) -> Rows:
    """The rows of a mirror's table, in these columns."""
    found = table.select([name for name in table.column_names if name in set(columns)])
    return Counter(map(_row, _values(found)))


def landing_files(folder: Path) -> list[Path]:
    """The landing files, also those that the mirror has moved. Their numbers begin with 1 and have no gap."""
    files = sorted(
        (path for name in _FOLDERS for path in (folder / name).glob("0*.parquet")), key=lambda path: path.name
    )
    numbers = [int(path.stem) for path in files]
    assert numbers == list(range(1, len(numbers) + 1)), f"landing files have the numbers {numbers}"
    return files


@dataclass(frozen=True)
class Chosen:
    """The rows and values that a mirror has, in Spark SQL; `types` are those of expressions, if not the source's."""

    where: str | None = None
    expressions: Mapping[str, str] | None = None
    types: Mapping[str, str] | None = None

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows with their new values, and with the condition as a value: no filter reaches the scan."""
        own = {field.name: field.dataType for field in rows.schema}
        found = {name: f"`{name}`" for name in rows.columns} | dict(self.expressions or {})
        types = {name: kind.simpleString() for name, kind in own.items()} | dict(self.types or {})
        listed = [
            f"{sql} AS `{name}`" if sql == f"`{name}`" else f"CAST({sql} AS {types[name]}) AS `{name}`"
            for name, sql in found.items()
        ]
        return rows.selectExpr(f"({self.where or 'true'}) AS {_SHOWN}", *listed)


ALL = Chosen()


def source_rows(
    spark: SparkSession, table: Path, version: int | None = None, chosen: Chosen = ALL, *, ids: str | None = None
) -> Rows:
    """Read a Delta table by Delta's public reader, at its tip or at a version.

    The table is read at a new path, for which Delta has no snapshot in its memory. `ids` names a column for row ids.
    """
    with_path = table.parent / f".read-{table.name}-{os.getpid()}-{next(_fresh)}"
    shutil.copytree(table, with_path, copy_function=os.link, ignore=shutil.ignore_patterns(".*.crc"))
    try:
        reader = spark.read.format("delta")
        rows = (reader if version is None else reader.option("versionAsOf", version)).load(str(with_path))
        if ids is not None:
            rows = rows.selectExpr("*", f"_metadata.row_id AS {ids}")
        return _collected(chosen.of(rows))
    finally:
        shutil.rmtree(with_path)


def difference(wanted: Rows, found: Rows) -> str | None:
    """Describe the missing and the additional rows of a mirror; None if it is equal."""
    if wanted == found:
        return None
    return f"the mirror lacks {_few(wanted - found)}, and has besides {_few(found - wanted)}"


def require_equal(wanted: Rows, found: Rows) -> None:
    """Fail with a description of the difference."""
    wrong = difference(wanted, found)
    assert wrong is None, wrong


def _few(rows: Rows) -> str:
    shown = ", ".join(
        str(dict(values)) + (f" ({count} times)" if count > 1 else "")
        for values, count in sorted(rows.items(), key=str)[:5]
    )
    return f"{rows.total()} rows [{shown}]"


def _collected(rows: DataFrame) -> Rows:
    """Collect the rows that fulfil the condition. Dates and times are numbers, because Python lacks some years."""
    listed = []
    for field in rows.schema:
        kind, name = field.dataType.simpleString(), f"`{field.name}`"
        numbers = {
            "date": f"unix_date({name})",
            "timestamp": f"unix_micros({name})",
            "timestamp_ntz": f"unix_micros(CAST({name} AS TIMESTAMP))",
        }
        listed.append(f"{numbers.get(kind, name)} AS {name}")
    found = (read.asDict(recursive=True) for read in rows.selectExpr(*listed).collect())
    return Counter(_row(values) for values in found if values.pop(_SHOWN))


def _values(table: pa.Table) -> list[dict[str, Value]]:
    columns: dict[str, Sequence[Value]] = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns[name] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _row(values: Mapping[str, Value]) -> Row:
    plain = {name: _plain(value) for name, value in values.items()}
    return tuple(sorted((name, value) for name, value in plain.items() if value is not None))


def _plain(value: Value) -> Value:
    """Nested values are JSON text in a mirror, where a member without a value is left out."""
    if isinstance(value, str):
        return _plain(nested) if (nested := _nested(value)) is not None else value
    if isinstance(value, Mapping):
        return json.dumps({str(name): _plain(member) for name, member in sorted(value.items()) if member is not None})
    if isinstance(value, list):
        return json.dumps([_plain(member) for member in value])
    if isinstance(value, Decimal):
        return str(value.normalize() + 0)
    return repr(value) if isinstance(value, float) else value


def _nested(text: str) -> Value:
    """Parse a JSON text; None if the text is not JSON."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None
