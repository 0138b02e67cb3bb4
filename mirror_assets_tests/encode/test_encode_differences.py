"""Comparing two versions by their files: unlike values have unlike stamps, and only what differs lands."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.counted import Counted
from mirror_assets.encode.encode_differences import DifferencesSlice, DifferingRows, encode_differences
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.net import NetSlice
from mirror_assets.encode.row_hash import value_stamp
from mirror_assets.encode.spark_errors import DUPLICATE_KEY
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.commits import CommitRange
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.row_counts import ReadRows
from mirror_assets.source.scan_builder import scan_differences
from mirror_assets.source.schema import LandedColumn
from mirror_assets_tests.errors import raises_row

_TYPES = {
    "a": "double",
    "b": "float",
    "c": "string",
    "d": "string",
    "e": "binary",
    "f": "decimal(38,10)",
    "g": "timestamp",
    "h": "timestamp_ntz",
    "i": "date",
    "j": "boolean",
    "k": "bigint",
    "l": "int",
}
_COLUMNS = tuple(LandedColumn(name, type_) for name, type_ in _TYPES.items())
_NESTED = LandedColumn("n", "string", nested=True)
_MOMENT = datetime(2020, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001 a timestamp_ntz
_VALUES: dict[str, Sequence[object]] = {
    "double": (None, 0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.0, math.nextafter(1.0, 2)),
    "float": (None, 0.0, -0.0, math.nan, math.inf, 1.5, -1.5),
    "string": (None, "", " ", "a", "A", "a ", "NULL", "0", "-0.0", "\u00e9", "e\u0301"),
    "binary": (None, b"", b"\0", b"\0\0", b"a"),
    "decimal(38,10)": tuple(
        None if text is None else Decimal(text) for text in (None, "0", "1", "1e-10", "-1", "1e27")
    ),
    "timestamp": (None, datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 1, tzinfo=timezone.utc)),
    "timestamp_ntz": (None, _MOMENT, _MOMENT.replace(microsecond=2)),
    "date": (None, date(1970, 1, 1), date(1970, 1, 2), date(1, 1, 1)),
    "boolean": (None, True, False),
    "bigint": (None, 0, 1, -1, 2**63 - 1),
    "int": (None, 0, 1, -1, 2**31 - 1),
}


def _stamps(rows: DataFrame, columns: Sequence[LandedColumn] = _COLUMNS) -> list[tuple[int, int]]:
    low, high = value_stamp(rows, columns)
    return [(row[0], row[1]) for row in rows.select(low, high).collect()]


def _rows(spark: SparkSession, rows: Sequence[Sequence[object]]) -> DataFrame:
    return spark.createDataFrame([tuple(row) for row in rows], ", ".join(f"{n} {t}" for n, t in _TYPES.items()))


def test_two_rows_have_one_stamp_only_if_all_their_values_are_the_same(spark: SparkSession) -> None:
    draw = random.Random(1)
    rows = [[draw.choice(_VALUES[type_]) for type_ in _TYPES.values()] for _ in range(300)]
    for row in rows[:200]:  # neighbours: one value differs, or two columns of one type have swapped their values
        other = list(row)
        at = draw.randrange(len(other))
        other[at] = draw.choice(_VALUES[list(_TYPES.values())[at]])
        other[2:4] = draw.choice([other[2:4], other[3:1:-1]])
        rows.append(other)
    known = [tuple(map(repr, row)) for row in rows]  # repr distinguishes -0.0, and has one NaN
    stamps = _stamps(_rows(spark, rows))
    assert len(set(stamps)) == len(set(known)) == len(set(zip(known, stamps, strict=True)))
    assert len({low for low, _ in stamps}) == len({high for _, high in stamps}) == len(set(known))


def test_nested_values_are_compared_as_they_land(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (named_struct('x', 0.0D, 'y', map('k', 1)), 1), (named_struct('x', -0.0D, 'y', "
        "map('k', 1)), 2), (named_struct('x', NULL, 'y', map('k', 1)), 3), (named_struct('x', NULL, 'y', map('k', "
        "NULL)), 4), (NULL, 5), (named_struct('x', 0.0D, 'y', map('k', 1)), 6) AS t(n, id) ORDER BY id"
    )
    stamps = _stamps(frame, [_NESTED])
    assert len(set(stamps)) == 5
    assert stamps[0] == stamps[5]


def test_a_column_that_the_older_version_has_narrower_or_not_at_all_is_compared(spark: SparkSession) -> None:
    wider = (LandedColumn("id", "bigint"), LandedColumn("more", "string"), LandedColumn("d", "double"))
    old = spark.sql("SELECT CAST(7 AS INT) AS id, CAST(1.5 AS FLOAT) AS d")
    new = spark.sql("SELECT CAST(7 AS BIGINT) AS id, CAST(NULL AS STRING) AS more, CAST(1.5 AS DOUBLE) AS d")
    assert _stamps(old, wider) == _stamps(new, wider) != _stamps(new.fillna({"more": ""}), wider)


def _landed(folder: Path) -> dict[int, tuple[int, str | None]]:
    rows = pa.concat_tables(pq.read_table(file) for file in folder.glob("*.parquet")).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row[ROW_MARKER], row["name"]) for row in rows}


_SLICE = NetSlice("t", ("id",), (LandedColumn("id", "bigint"), LandedColumn("name", "string")), 2)


def _differences(uri: str, before: int, last: int) -> DifferencesSlice:
    return DifferencesSlice(scan_differences(DeltaLog(uri), CommitRange(before + 1, last)), _SLICE, by_values=True)


@pytest.fixture
def changed(spark: SparkSession, tmp_path: Path) -> DifferencesSlice:
    """Version 1 rewrites all rows of version 0, changes one, adds one and takes one away."""
    uri = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{uri}` USING delta AS SELECT id, concat('n', id) AS name FROM range(0, 9, 1, 2)")
    rows = "SELECT id, IF(id = 3, NULL, concat('n', id)) AS name FROM range(1, 10, 1, 3)"
    spark.sql(f"INSERT OVERWRITE delta.`{uri}` {rows}")
    return _differences(uri, 0, 1)


def test_only_keys_that_differ_land(spark: SparkSession, tmp_path: Path, changed: DifferencesSlice) -> None:
    counts = encode_differences(spark, changed, str(tmp_path / "parts"), "zstd", {})
    differing = {0: (Marker.DELETE, None), 3: (Marker.UPDATE, None), 9: (Marker.INSERT, "n9")}
    assert _landed(tmp_path / "parts") == differing
    read = ReadRows(insert=9, delete=9)
    assert counts == Counted.of_commit(1, read, read)


def test_keys_that_are_too_many_for_a_broadcast_land_the_same(
    spark: SparkSession, tmp_path: Path, changed: DifferencesSlice
) -> None:
    differing = DifferingRows.read(spark, changed)
    rows = differing.landed_rows(differing.changed_keys(), {}, 2, is_few=False)
    write_parts(rows, str(tmp_path / "parts"), "zstd")
    assert _landed(tmp_path / "parts") == {0: (Marker.DELETE, None), 3: (Marker.UPDATE, None), 9: (Marker.INSERT, "n9")}


def test_two_rows_of_one_key_are_refused_with_the_key(
    spark: SparkSession, tmp_path: Path, changed: DifferencesSlice
) -> None:
    uri = changed.scans.last.uri
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (77, 'a'), (77, 'a')")
    twice = _differences(uri, 1, 2)
    with raises_row(DUPLICATE_KEY, match="«id=77» at version 2"):
        encode_differences(spark, twice, str(tmp_path / "parts"), "zstd", {})
