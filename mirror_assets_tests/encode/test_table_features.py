"""A table of each feature that doesn't stop the reader, read as by Delta's public readers; and old types in files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.encode.columns import ROW_ID, ROW_VERSION, projected
from mirror_assets.encode.scan_reader import read_scan
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import Projection
from mirror_assets.source.table_features import FEATURES, Treatment
from mirror_assets_tests.delta_reader import read_changes, read_version
from mirror_assets_tests.handmade_table import HandmadeTable, commit_info, features, remove
from mirror_assets_tests.scans import scanned_changes
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.source.handmade import column
from mirror_assets_tests.spark_4 import IS_SPARK_4, possible_with_spark_4

_BY_CATALOG = {"catalogManaged", "catalogOwned"}
_FEED = "delta.enableChangeDataFeed = true"
_VARIANTS = (
    """'{"a": 1, "b": "x", "c": [{"x": 1.5}, {"x": "no"}], "z": null}', '[1, "2"]', NULL, '{"a": "t"}', 'null'"""
)
# Delta writes variants in parts if these settings say so.
_SHREDDING = {
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.forceShreddingSchemaForTest": "a INT, b STRING, c ARRAY<STRUCT<x: DOUBLE>>",
}


def _iceberg(version: int, properties: str) -> str:
    """Version 1 has no lists and maps."""
    types, values = (
        ", list ARRAY<STRUCT<x: INT>>, map MAP<STRING, ARRAY<INT>>",
        ", array(struct(1 AS x)), map('k', array(1))",
    )
    types, values = (types, values) if version > 1 else ("", "")
    return f"""
        CREATE TABLE {{t}} (id INT, part STRING{types}) USING delta PARTITIONED BY (part) TBLPROPERTIES ({_FEED},
            delta.columnMapping.mode = 'id', delta.enableIcebergCompatV{version} = true, {properties});
        INSERT INTO {{t}} SELECT id, part{values} FROM VALUES (1, 'a'), (2, 'b') AS v(id, part);
        ALTER TABLE {{t}} RENAME COLUMN id TO key;
        UPDATE {{t}} SET key = 3 WHERE key = 2"""


# The statements of tables that Delta writes; then the features in the protocol of each.
WRITTEN = {
    "rules": """
        CREATE TABLE {t} (
            id BIGINT GENERATED ALWAYS AS IDENTITY, a INT NOT NULL DEFAULT 7, g INT GENERATED ALWAYS AS (a + 1)
        ) USING delta CLUSTER BY (a) TBLPROPERTIES (delta.appendOnly = true, delta.enableInCommitTimestamps = true,
            delta.enableRowTracking = true, delta.checkpointPolicy = 'v2', delta.checkpointInterval = '1',
            'delta.feature.allowColumnDefaults' = 'supported', 'delta.feature.checkpointProtection' = 'supported',
            'delta.feature.vacuumProtocolCheck' = 'supported');
        ALTER TABLE {t} ADD CONSTRAINT positive CHECK (a > 0);
        INSERT INTO {t} (a) VALUES (1), (2), (DEFAULT)""",
    "types": f"""
        CREATE TABLE {{t}} (id INT, v VARIANT, s STRUCT<w: VARIANT, at: TIMESTAMP_NTZ>) USING delta TBLPROPERTIES
            (delta.enableDeletionVectors = true, delta.enableVariantShredding = true);
        INSERT INTO {{t}} SELECT id, parse_json(j), struct(parse_json(j), TIMESTAMP_NTZ'0001-02-03 04:05:06')
            FROM (SELECT posexplode(array({_VARIANTS})) AS (id, j));
        DELETE FROM {{t}} WHERE id = 1""",
    "partition columns in files": f"""
        CREATE TABLE {{t}} (id INT, part INT) USING delta PARTITIONED BY (part)
            TBLPROPERTIES ({_FEED}, 'delta.feature.materializePartitionColumns' = 'supported');
        INSERT INTO {{t}} VALUES (1, 7), (2, NULL);
        UPDATE {{t}} SET part = 8 WHERE id = 2""",
    "iceberg 2": _iceberg(2, "delta.enableDeletionVectors = false"),
    "iceberg 1": _iceberg(1, "delta.enableDeletionVectors = false"),
    "iceberg 3": _iceberg(3, "delta.enableRowTracking = true"),
}
HAS = {
    "rules": {
        *("allowColumnDefaults", "appendOnly", "checkConstraints", "checkpointProtection", "clustering"),
        *("domainMetadata", "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "rowTracking"),
        *("v2Checkpoint", "vacuumProtocolCheck"),
    },
    "types": {"deletionVectors", "timestampNtz", "variantShredding", "variantType"},
    "partition columns in files": {"changeDataFeed", "materializePartitionColumns"},
    "iceberg 2": {"columnMapping", "icebergCompatV2"},
    "iceberg 1": {"icebergCompatV1"},
    "iceberg 3": {"icebergCompatV3"},
    "by hand": {"collations", "columnMappingUsageTracking", "icebergWriterCompatV1", "icebergWriterCompatV3"},
    "widened": {"typeWidening"},
}


def test_each_feature_that_is_not_refused_has_a_table() -> None:
    read = {one.name for one in FEATURES if one.treatment is not Treatment.REFUSED}
    assert set().union(*HAS.values()) == read - _BY_CATALOG


def _rows(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr("to_json(struct(*))").collect())


def _is_read_as_by_delta(spark: SparkSession, name: str, path: Path) -> None:
    state = DeltaLog(str(path)).state()
    assert {feature.removesuffix("-preview") for feature in state.protocol.features} >= HAS[name]
    found = _rows(read_scan(spark, scan_version(DeltaLog(str(path)), state.version)))
    assert found == _rows(read_version(spark, str(path), state.version))
    if state.metadata.feed_enabled:
        feed = read_changes(spark, str(path), state.version, state.version)
        assert _rows(scanned_changes(spark, str(path), state.version, state.version)) == _rows(feed) != []
    if state.metadata.row_tracking:
        ids = read_scan(spark, scan_version(DeltaLog(str(path)), state.version), row_ids=True).select(
            ROW_ID, ROW_VERSION
        )
        wanted = read_version(spark, str(path), state.version).selectExpr(
            f"_metadata.row_id AS {ROW_ID}", f"_metadata.row_commit_version AS {ROW_VERSION}"
        )
        assert _rows(ids) == _rows(wanted)
    assert found


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@pytest.mark.parametrize("name", smoke_first(list(WRITTEN), 3))
def test_a_table_is_read_as_by_delta(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with _settings(spark, _SHREDDING if name == "types" else {}), possible_with_spark_4():
        for statement in WRITTEN[name].split(";"):
            spark.sql(statement.replace("{t}", f"delta.`{tmp_path}`"))
    _is_read_as_by_delta(spark, name, tmp_path)
    names = {name for file in tmp_path.rglob("part-*.parquet") for name in pq.ParquetFile(file).schema.names}
    assert ("typed_value" in names) == (name == "types")
    assert ("part" in names) == (name == "partition columns in files")


def test_collations_and_features_without_a_writer_at_hand(spark: SparkSession, tmp_path: Path) -> None:
    """One of the two collations is a partition's. A condition compares texts by them, as at the source."""
    name = column("name", "string", metadata={"__COLLATIONS": {"name": "spark.UTF8_LCASE"}})
    part = column("part", "string", metadata={"__COLLATIONS": {"part": "icu.de_AI"}})
    protocol = features(writers=["collations-preview", "domainMetadata", *(HAS["by hand"] - {"collations"})])
    table = HandmadeTable(tmp_path / "t", column("id"), name, part, partitioned_by=["part"], protocol=protocol)
    old = table.add({"id": 1, "name": "a"}, {"id": 2, "name": "A"}, partition={"part": "ä"})
    table.commit(commit_info(), old, {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}})
    new = table.add({"id": 1, "name": "a"}, {"id": 2, "name": "b"}, partition={"part": "a"})
    table.commit(commit_info(), remove(old), new)
    _is_read_as_by_delta(spark, "by hand", tmp_path / "t")
    condition = Projection("name = 'A' AND part = 'a'")
    chosen = projected(read_scan(spark, scan_version(DeltaLog(str(table.path)), 0)), condition)
    assert chosen.count() == (2 if IS_SPARK_4 else 0), (
        "Spark 3.5 has no collations, and the condition is refused before"
    )


# A column of each old type, with its new type and a value.
_WIDENED = {
    "a": ("BYTE", "SHORT", "-128Y"),
    "b": ("BYTE", "INT", "127Y"),
    "c": ("BYTE", "BIGINT", "3Y"),
    "d": ("BYTE", "DOUBLE", "4Y"),
    "e": ("BYTE", "DECIMAL(10, 0)", "5Y"),
    "f": ("SHORT", "INT", "-32768S"),
    "g": ("SHORT", "BIGINT", "32767S"),
    "h": ("SHORT", "DOUBLE", "-1S"),
    "i": ("SHORT", "DECIMAL(12, 2)", "7S"),
    "j": ("INT", "BIGINT", "-2147483648"),
    "k": ("INT", "DOUBLE", "2147483647"),
    "l": ("INT", "DECIMAL(38, 28)", "-2147483648"),
    "m": ("BIGINT", "DECIMAL(20, 0)", "-9223372036854775808L"),
    "n": ("BIGINT", "DECIMAL(38, 18)", "9223372036854775807L"),
    "o": ("FLOAT", "DOUBLE", "float('1.1')"),
    "p": ("DATE", "TIMESTAMP_NTZ", "DATE'1500-02-28'"),
    "q": ("DECIMAL(5, 2)", "DECIMAL(9, 2)", "-123.45BD"),
    "r": ("DECIMAL(9, 2)", "DECIMAL(20, 4)", "1234567.89BD"),
    "s": ("DECIMAL(18, 2)", "DECIMAL(38, 12)", "-1.45BD"),
    "t": (
        "STRUCT<x: BYTE, y: ARRAY<INT>>",
        "STRUCT<x: DOUBLE, y: ARRAY<DECIMAL(14, 2)>>",
        "struct(1Y, array(1, NULL))",
    ),
    "u": ("MAP<INT, DATE>", "MAP<BIGINT, TIMESTAMP_NTZ>", "map(1, DATE'0001-01-01')"),
    "v": ("DATE", "TIMESTAMP_NTZ", "DATE'1400-01-01'"),
}


def test_files_are_read_in_each_wider_type(spark: SparkSession, tmp_path: Path) -> None:
    """`v` is the partition column."""
    columns = ", ".join(f"{name} {old}" for name, (old, _, _) in _WIDENED.items())
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path}` ({columns}) USING delta PARTITIONED BY (v) TBLPROPERTIES "
        "(delta.enableTypeWidening = true, 'delta.feature.timestampNtz' = 'supported')"
    )
    spark.sql(f"INSERT INTO delta.`{tmp_path}` SELECT {', '.join(value for _, _, value in _WIDENED.values())}")
    wider = ("t.x TYPE DOUBLE", "t.y.element TYPE DECIMAL(14, 2)", "u.key TYPE BIGINT", "u.value TYPE TIMESTAMP_NTZ")
    plain = (f"{name} TYPE {new}" for name, (_, new, _) in _WIDENED.items() if "<" not in new)
    changes = ", ".join((*plain, *wider))
    with possible_with_spark_4():
        spark.sql(f"ALTER TABLE delta.`{tmp_path}` ALTER COLUMN {changes}")
    _is_read_as_by_delta(spark, "widened", tmp_path)
    wanted = ", ".join(
        f"CAST(CAST({value} AS {old}) AS {new}) AS {name}" for name, (old, new, value) in _WIDENED.items()
    )
    found = read_scan(spark, scan_version(DeltaLog(str(tmp_path)), 2))
    assert _rows(found) == _rows(spark.sql(f"SELECT {wanted}"))


_DAYS = ("0001-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1677-01-01", "2262-05-01", "9999-12-31")
_OUT, _ZONE = "spark.sql.parquet.outputTimestampType", "spark.sql.session.timeZone"
_MODES = ("spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite")


@pytest.mark.parametrize("stored", smoke_first(["INT96", "TIMESTAMP_MICROS"]))
@pytest.mark.parametrize("calendar", smoke_first(["LEGACY", "CORRECTED"]))
def test_days_and_times_of_all_years_are_read_from_both_calendars(
    spark: SparkSession, tmp_path: Path, stored: str, calendar: str
) -> None:
    """What Spark wrote, in another time zone, is compared with its numbers before it was written."""
    numbers = "unix_date(d) AS d, unix_micros(at) AS at, unix_date(s.d) AS e, unix_micros(list[0]) AS f, n"
    values = ", ".join(
        f"(DATE'{day}', TIMESTAMP'{day} 01:02:03.123456', TIMESTAMP_NTZ'{day} 01:02:03.123456', "
        f"struct(DATE'{day}' AS d), array(TIMESTAMP'{day} 12:00:00'))"
        for day in _DAYS
    )
    with _settings(spark, {_OUT: stored, _ZONE: "America/Los_Angeles", **dict.fromkeys(_MODES, calendar)}):
        frame = spark.sql(f"SELECT * FROM VALUES {values} AS v(d, at, n, s, list)")
        wanted = _rows(frame.selectExpr(*numbers.split(", ")))
        frame.write.format("delta").save(str(tmp_path))
    found = read_scan(spark, scan_version(DeltaLog(str(tmp_path)), 0))
    assert _rows(found.selectExpr(*numbers.split(", "))) == wanted


@pytest.mark.parametrize("int96", [False, True])
def test_files_of_spark_2_have_the_older_calendar(spark: SparkSession, tmp_path: Path, int96: bool) -> None:
    """The day that was 28 February 1500 in the calendar of those years is 9 March in today's."""
    day = (dt.date(1500, 3, 9) - dt.date(1970, 1, 1)).days
    moment = pa.array([day * 86_400_000_000], pa.timestamp("us", tz="UTC"))
    table = HandmadeTable(tmp_path / "t", column("d", "date"), column("at", "timestamp"))
    add = table.add({"d": 0, "at": 0}, name="old.parquet")
    with pq.ParquetWriter(
        tmp_path / "t" / "old.parquet",
        pa.schema({"d": pa.date32(), "at": moment.type}),
        use_deprecated_int96_timestamps=int96,
        store_schema=False,
    ) as file:
        file.write_table(pa.table({"d": pa.array([day], pa.date32()), "at": moment}))
        file.add_key_value_metadata({"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"})
    add["add"]["size"] = (tmp_path / "t" / "old.parquet").stat().st_size
    table.commit(commit_info(), add)
    found = read_scan(spark, scan_version(DeltaLog(str(table.path)), 0)).selectExpr("string(d)", "string(at)").collect()
    assert [tuple(row) for row in found] == [("1500-02-28", "1500-02-28 00:00:00")]


def test_a_timestamp_without_a_zone_is_read_from_int96(spark: SparkSession, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", column("n", "timestamp_ntz"), protocol=features("timestampNtz"))
    early = dt.datetime(1, 2, 3, 4, 5, 6)  # noqa: DTZ001 the type has no zone
    add = table.add({"n": early}, types={"n": pa.timestamp("us")}, use_deprecated_int96_timestamps=True)
    table.commit(commit_info(), add)
    with possible_with_spark_4():
        found = read_scan(spark, scan_version(DeltaLog(str(table.path)), 0)).selectExpr("string(n)").collect()
    assert [row[0] for row in found] == ["0001-02-03 04:05:06"]


def test_a_column_that_only_has_nulls_is_read(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(2).coalesce(1).selectExpr("NULL AS nothing", "id").write.format("delta").save(str(tmp_path))
    found = read_scan(spark, scan_version(DeltaLog(str(tmp_path)), 0))
    assert found.dtypes == [("nothing", "void"), ("id", "bigint")]
    assert [tuple(row) for row in found.collect()] == [(None, 0), (None, 1)]
