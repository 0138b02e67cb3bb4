"""Net changes: of change rows, and of two versions by their files, where only what differs lands."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.columns import COMMIT_VERSION, value_stamp
from mirror_assets.encode.counted import Counted, observed_changes
from mirror_assets.encode.errors import DUPLICATE_KEY
from mirror_assets.encode.inserts import write_parts
from mirror_assets.encode.net_changes import (
    DifferencesSlice,
    DifferingRows,
    NetSlice,
    encode_differences,
    encode_net,
    net_rows,
)
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.source.commits import CommitRange, ReadRows
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes, scan_differences
from mirror_assets.source.schema import ALL_ROWS, LandedColumn
from mirror_assets_tests.delta_reader import read_version
from mirror_assets_tests.encode.histories import History
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
# One process makes the histories once for all tests that read them.
pytestmark = pytest.mark.xdist_group("random histories")

_NET_COLUMNS = (LandedColumn("id", "int"), LandedColumn("name", "string"))
_NET_SLICE = NetSlice("t", ("id",), _NET_COLUMNS, 2)
_SCHEMA = "_change_type STRING, _commit_version BIGINT, id INT, name STRING"
OLD, NEW = "delete", "insert"


def _landed(folder: Path) -> dict[int, tuple[int, str | None]]:
    rows = pa.concat_tables(pq.read_table(file) for file in folder.glob("*.parquet")).to_pylist()
    found = {row["id"]: (row[ROW_MARKER], row["name"]) for row in rows}
    assert len(found) == len(rows)
    return found


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
    counts = encode_differences(spark, changed, str(tmp_path / "parts"), {})
    differing = {0: (Marker.DELETE, None), 3: (Marker.UPDATE, None), 9: (Marker.INSERT, "n9")}
    assert _landed(tmp_path / "parts") == differing
    read = ReadRows(insert=9, delete=9)
    assert counts == replace(Counted.of_commit(1, read, read), changed_keys=len(differing))


def test_keys_that_are_too_many_for_a_broadcast_land_the_same(
    spark: SparkSession, tmp_path: Path, changed: DifferencesSlice
) -> None:
    differing = DifferingRows.read(spark, changed)
    rows = differing.landed_rows(differing.changed_keys(), {}, 2, is_few=False)
    write_parts(rows, str(tmp_path / "parts"))
    assert _landed(tmp_path / "parts") == {0: (Marker.DELETE, None), 3: (Marker.UPDATE, None), 9: (Marker.INSERT, "n9")}


def test_a_row_that_the_second_read_lacks_fails_the_query(
    spark: SparkSession, tmp_path: Path, changed: DifferencesSlice
) -> None:
    differing = DifferingRows.read(spark, changed)
    keys = differing.changed_keys()
    rows = replace(differing, new=differing.new.where("id <> 3")).landed_rows(keys, {}, 2, is_few=False)
    with pytest.raises((PySparkException, Py4JJavaError), match="was read once, and not again"):
        write_parts(rows, str(tmp_path / "parts"))


def test_two_rows_of_one_key_are_refused_with_the_key(
    spark: SparkSession, tmp_path: Path, changed: DifferencesSlice
) -> None:
    uri = changed.scans.last.uri
    spark.sql(f"INSERT INTO delta.`{uri}` VALUES (77, 'a'), (77, 'a')")
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id = 77")
    for before, last in ((1, 2), (2, 3)):
        with raises_row(DUPLICATE_KEY, match="«id=77» at version 2"):
            encode_differences(spark, _differences(uri, before, last), str(tmp_path / f"parts-{last}"), {})


def feed(spark: SparkSession, *rows: tuple[str, int, int, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), _SCHEMA)


def test_what_came_and_went_lands_nothing_and_all_else_once(spark: SparkSession, tmp_path: Path) -> None:
    changes = feed(
        spark,
        *((NEW, 1, 1, "came"), (OLD, 2, 1, "came")),
        *((NEW, 1, 2, "came"), (OLD, 3, 2, "came"), (NEW, 3, 2, "stayed")),
        *((OLD, 1, 3, "was"), (NEW, 2, 3, "back"), (OLD, 4, 3, "back")),
        *((OLD, 1, 4, "was"), (NEW, 1, 4, "once"), (OLD, 2, 4, "once")),
        *((NEW, 2, 4, "twice"), (OLD, 1, 5, "same"), (NEW, 1, 5, "same")),
    )
    counts = encode_net(observed_changes(changes, ALL_ROWS), _NET_SLICE, str(tmp_path / "parts"), {})
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == _NET_SLICE.parts
    assert _landed(tmp_path / "parts") == {
        2: (Marker.INSERT, "stayed"),
        3: (Marker.DELETE, None),
        4: (Marker.UPDATE, "twice"),
        5: (Marker.UPDATE, "same"),
    }
    read = ReadRows(insert=7, delete=7)
    assert (counts.scanned, counts.landing) == (read, read)
    signs = [(row[COMMIT_VERSION], 1 if row["_change_type"] == NEW else -1) for row in changes.collect()]
    assert counts.weighted == sum(sign * (version * 2654435761 % 1000003 + 1) for version, sign in signs)


def test_two_live_rows_of_one_key_are_refused_with_the_key(spark: SparkSession, tmp_path: Path) -> None:
    twice = feed(spark, (NEW, 2, 1, "a"), (NEW, 2, 1, "b"))
    with raises_row(DUPLICATE_KEY, match="«id=1» at version 2"):
        encode_net(observed_changes(twice, ALL_ROWS), _NET_SLICE, str(tmp_path / "parts"), {})


def test_net_changes_of_a_random_history_give_the_source(
    spark: SparkSession, tmp_path: Path, history_of: Callable[[int, bool], History]
) -> None:
    history = history_of(2, True)
    columns = (_NET_COLUMNS[0], LandedColumn("part", "int"), _NET_COLUMNS[1], LandedColumn("amount", "decimal(10,2)"))
    changes = read_scan(spark, scan_changes(DeltaLog(history.uri), CommitRange(1, history.tip)))
    slice_ = NetSlice("t", ("id",), columns, 3)
    plan = net_rows(changes, slice_, {})._jdf.queryExecution().executedPlan().toString()
    assert (plan.count("Exchange hashpartitioning"), plan.count("Window [")) == (1, 1)
    encode_net(observed_changes(changes, ALL_ROWS), slice_, str(tmp_path / "parts"), {})
    rows = {row["id"]: row.asDict() for row in read_version(spark, history.uri, 0).collect()}
    for file in (tmp_path / "parts").glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            marker = row.pop(ROW_MARKER)
            assert (row["id"] in rows) == (marker != Marker.INSERT)
            if marker == Marker.DELETE:
                del rows[row["id"]]
            else:
                rows[row["id"]] = row
    assert rows == {row["id"]: row.asDict() for row in read_version(spark, history.uri, history.tip).collect()}
