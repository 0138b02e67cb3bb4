"""The power of `reconcile`: planted differences, conditions, masks and wrong statistics. Equal tables are equal."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.source.schema import ALL_ROWS, LandedColumn, Projection
from mirror_assets.spark_api import arrow_table
from mirror_assets.verify.reconcile import reconcile
from mirror_assets.verify.reconciliation import ReconcileRequest, ReconcileState, Reconciliation
from mirror_assets_tests.smoke import smoke_first
from mirror_assets_tests.source.handmade import (
    Action,
    column,
    file_action,
    metadata_action,
    schema_string,
    write_commit,
)

_TYPES: dict[str, tuple[str, str, str]] = {
    "whole": ("bigint", "9007199254740993", "9007199254740992"),
    "small": ("tinyint", "1Y", "2Y"),
    "real": ("double", "0.0D", "-0.0D"),
    "single": ("float", "CAST(-0.0D AS FLOAT)", "CAST(0.0D AS FLOAT)"),
    "exact": ("decimal(38,18)", "CAST('0.000000000000000001' AS DECIMAL(38,18))", "CAST(0 AS DECIMAL(38,18))"),
    "flag": ("boolean", "false", "NULL"),
    "text": ("string", "''", "NULL"),
    "letters": ("string", "'a'", "'A'"),
    "padded": ("string", "'a '", "'a'"),
    "composed": ("string", "'é'", "'e\u0301'"),
    "bytes": ("binary", "X'00'", "X'0000'"),
    "no_bytes": ("binary", "X''", "NULL"),
    "day": ("date", "DATE'0001-01-01'", "DATE'0001-01-03'"),
    "at": ("timestamp", "TIMESTAMP'2020-01-01 00:00:00.000001'", "TIMESTAMP'2020-01-01 00:00:00'"),
    "local": ("timestamp_ntz", "TIMESTAMP_NTZ'2020-01-01 01:00:00'", "TIMESTAMP_NTZ'2020-01-01 00:00:00'"),
    "nested": ("string", """'{"a":null}'""", "'{}'"),
}


def _columns(types: Mapping[str, tuple[str, str, str]]) -> tuple[tuple[str, str], ...]:
    return (("k", "string"), *((name, kind[0]) for name, kind in types.items()))


@dataclass(frozen=True)
class Tables:
    """A source and a mirror."""

    spark: SparkSession
    root: Path

    @property
    def source(self) -> str:
        return str(self.root / "source")

    @property
    def mirror(self) -> str:
        return str(self.root / "mirror")

    def request(self, columns: Sequence[tuple[str, str]], projection: Projection = ALL_ROWS) -> ReconcileRequest:
        table = DeltaTable(self.source)
        return ReconcileRequest(
            table="t",
            source=self.source,
            source_id=str(table.metadata().id),
            version=table.version(),
            keys=("k",),
            columns=tuple(columns),
            mirror=self.mirror,
            opened_for=self.root.name,
            projection=projection,
        )

    def write(self, path: str, rows: DataFrame) -> None:
        rows.coalesce(1).write.format("delta").mode("overwrite").save(path)

    def mirrors(self, rows: pa.Table) -> None:
        write_deltalake(self.mirror, rows, mode="overwrite", schema_mode="overwrite")


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """A source with a row of each type's value, and one of NULLs."""
    tables = Tables(spark, tmp_path_factory.mktemp("power"))
    values = ", ".join(f"{kind[1]} AS {name}" for name, kind in _TYPES.items())
    nulls = ", ".join(f"CAST(NULL AS {kind[0]})" for kind in _TYPES.values())
    tables.write(tables.source, spark.sql(f"SELECT 'a' AS k, {values} UNION ALL SELECT 'b', {nulls}"))
    return tables


def _compare(tables: Tables, mirror: str, keys: tuple[str, ...] = ("k",)) -> Reconciliation:
    """Compare with a mirror made of the source by this projection in SQL."""
    tables.write(tables.mirror, tables.spark.sql(f"SELECT {mirror} FROM delta.`{tables.source}`"))
    return reconcile(tables.spark, replace(tables.request(_columns(_TYPES)), keys=keys))


def _changed(name: str) -> str:
    """All columns, this one with its other value in row a."""
    kind, _, other = _TYPES[name]
    return ", ".join(
        f"IF(k = 'a', CAST({other} AS {kind}), {one}) AS {one}" if one == name else one for one in ("k", *_TYPES)
    )


def test_values_of_all_types_that_differ_are_found_together(typed: Tables) -> None:
    changed = ", ".join(
        f"IF(k = 'a', CAST({other} AS {kind}), {name}) AS {name}" for name, (kind, _, other) in _TYPES.items()
    )
    result = _compare(typed, f"k, {changed}")
    assert (result.state, result.columns) == (ReconcileState.DIFFERENT, tuple(_TYPES))


@pytest.mark.parametrize("name", smoke_first(["real", *(name for name in _TYPES if name != "real")]))
def test_a_value_of_each_type_that_differs_is_found(typed: Tables, name: str) -> None:
    result = _compare(typed, _changed(name))
    assert (result.state, result.columns) == (ReconcileState.DIFFERENT, (name,))
    assert _compare(typed, _changed(name), keys=()).state is ReconcileState.DIFFERENT


_ROWS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a row lost": lambda rows: rows.slice(1),
    "a row doubled": lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
    "a row in place of another": lambda rows: pa.concat_tables([rows.slice(0, 1)] * 2),
    "a key in other case": lambda rows: rows.set_column(0, "k", [pa.array(["A", "b"], pa.string())]),
    "a key with a blank": lambda rows: rows.set_column(0, "k", [pa.array(["a ", "b"], pa.string())]),
    "a key of NULL": lambda rows: rows.set_column(0, "k", [pa.array([None, "b"], pa.string())]),
    "all rows lost": lambda rows: rows.slice(0, 0),
    "values of two rows swapped": lambda rows: rows.set_column(0, "k", [pa.array(["b", "a"], pa.string())]),
}


@pytest.mark.parametrize("keys", [("k",), pytest.param((), marks=pytest.mark.soak)], ids=["keyed", "keyless"])
@pytest.mark.parametrize("name", list(_ROWS))
def test_rows_that_differ_are_found(typed: Tables, name: str, keys: tuple[str, ...]) -> None:
    rows = arrow_table(typed.spark.read.format("delta").load(typed.source)).sort_by("k")
    typed.mirrors(_ROWS[name](rows))
    result = reconcile(typed.spark, replace(typed.request(_columns(_TYPES)), keys=keys))
    assert result.state is ReconcileState.DIFFERENT


def test_equal_tables_are_equal(typed: Tables) -> None:
    assert _compare(typed, "*").state is ReconcileState.EQUAL
    assert _compare(typed, "*", keys=()).state is ReconcileState.EQUAL


def test_all_nan_are_equal(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(spark, tmp_path)
    payload = pa.array([0x7FF8000000000001], pa.int64()).view(pa.float64())
    write_deltalake(tables.source, pa.table({"k": ["a"], "x": payload}))
    write_deltalake(tables.mirror, pa.table({"k": ["a"], "x": [float("nan")]}))
    assert reconcile(spark, tables.request([("k", "string"), ("x", "double")])).state is ReconcileState.EQUAL


def test_a_type_that_landed_wrongly_is_found_though_both_have_it(spark: SparkSession, tmp_path: Path) -> None:
    """The landing type of the request may come from the same error as the mirror's."""
    tables = Tables(spark, tmp_path)
    tables.write(tables.source, spark.sql("SELECT 'a' AS k, TIMESTAMP_NTZ'2020-01-01 00:00:00' AS x"))
    tables.write(tables.mirror, spark.sql("SELECT 'a' AS k, TIMESTAMP'2020-01-01 00:00:00' AS x"))
    result = reconcile(spark, tables.request([("k", "string"), ("x", "timestamp")]))
    assert (result.state, result.columns) == (ReconcileState.DIFFERENT, ("x",))


_MASK = LandedColumn("name", "string", sql="sha2(name, 256)")
_INVERSE = LandedColumn("inverse", "double", sql="1 / (amount - 1)")
_PROJECTION = Projection("amount > 1", (_MASK, _INVERSE), ("amount", "name"))
_PROJECTED = [("k", "string"), ("name", "string"), ("amount", "double"), ("inverse", "double")]
_LANDED = "k, sha2(name, 256) AS name, amount, 1 / (amount - 1) AS inverse"


@pytest.mark.parametrize(
    ("landed", "where", "state"),
    [
        (_LANDED, "amount > 1", ReconcileState.EQUAL),
        (_LANDED.replace("sha2(name, 256) AS name", "name"), "amount > 1", ReconcileState.DIFFERENT),
        (_LANDED.replace("1 / (amount - 1)", "CAST(1 AS DOUBLE)"), "amount > 1", ReconcileState.DIFFERENT),
        (
            _LANDED.replace("1 /", "try_divide(1,").replace("(amount - 1)", "amount - 1)"),
            "true",
            ReconcileState.DIFFERENT,
        ),
        (
            _LANDED.replace("1 /", "try_divide(1,").replace("(amount - 1)", "amount - 1)"),
            "NOT amount > 1",
            ReconcileState.DIFFERENT,
        ),
        (_LANDED, "amount > 2", ReconcileState.DIFFERENT),
    ],
    ids=["right", "no mask", "another expression", "no condition", "condition turned round", "another condition"],
)
def test_condition_and_masks(
    spark: SparkSession, tmp_path: Path, landed: str, where: str, state: ReconcileState
) -> None:
    """The expression fails for a row that the condition leaves out."""
    tables = Tables(spark, tmp_path)
    rows = (
        "VALUES ('a', 'x', 1D), ('b', 'y', 2D), ('c', NULL, 3D), ('d', 'z', CAST(NULL AS DOUBLE)) AS t(k, name, amount)"
    )
    tables.write(tables.source, spark.sql(f"SELECT * FROM {rows}"))
    tables.write(tables.mirror, spark.sql(f"SELECT {landed} FROM {rows} WHERE {where}"))
    result = reconcile(spark, tables.request(_PROJECTED, _PROJECTION))
    assert result.state is state
    if state is ReconcileState.EQUAL:
        assert result.source_rows == result.mirror_rows == 2


def _write_file(
    source: Path, rows: pa.Table, stats: Mapping[str, object], fields: Sequence[Action], partition: Mapping[str, str]
) -> None:
    """Write a table of one file, with these statistics and this partition."""
    source.mkdir()
    pq.write_table(rows, source / "a.parquet")
    metadata = metadata_action(schema_string(column("k", "string"), *fields))
    added = file_action("add", size=(source / "a.parquet").stat().st_size)
    metadata["metaData"] |= {"partitionColumns": list(partition)}  # type: ignore[operator]
    added["add"] |= {"stats": json.dumps(stats), "partitionValues": partition}  # type: ignore[operator]
    write_commit(source, 0, [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, metadata, added])


def _wrong_statistics(path: Path) -> None:
    """The published workaround of delta-rs#1411 writes 0 for infinity."""
    stats = {"numRecords": 2, "minValues": {"amount": 0}, "maxValues": {"amount": 0}, "nullCount": {"amount": 0}}
    rows = pa.table({"k": ["a", "b"], "amount": [500.0, float("inf")]})
    _write_file(path, rows, stats, [column("amount", "double")], {})


def _wrong_generated_partition(path: Path) -> None:
    """The day was written in another time zone than it is generated in."""
    at = pa.array([1_577_836_800_000_000], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"k": ["a"], "at": at, "amount": [500.0]})
    day = column("day", "date", metadata={"delta.generationExpression": "CAST(at AS DATE)"})
    fields = [column("at", "timestamp"), column("amount", "double"), day]
    _write_file(path, rows, {"numRecords": 1}, fields, {"day": "2019-12-31"})


_UNFIT: dict[str, tuple[Callable[[Path], None], str, list[tuple[str, str]]]] = {
    "statistics": (_wrong_statistics, "amount > 100", [("k", "string"), ("amount", "double")]),
    "generated partition": (
        _wrong_generated_partition,
        "at >= TIMESTAMP'2020-01-01 00:00:00'",
        [("k", "string"), ("at", "timestamp"), ("amount", "double"), ("day", "date")],
    ),
}


@pytest.mark.parametrize("name", list(_UNFIT))
def test_rows_that_deltas_reader_would_skip_are_compared(spark: SparkSession, tmp_path: Path, name: str) -> None:
    make, where, columns = _UNFIT[name]
    tables = Tables(spark, tmp_path)
    make(Path(tables.source))
    source = spark.read.format("delta").load(tables.source)
    others = spark.newSession()
    others.conf.set("spark.databricks.delta.generatedColumn.partitionFilterOptimization.enabled", "true")
    assert others.read.format("delta").load(tables.source).where(where).count() == 0, "the filter loses them"
    names = [column for column, _ in columns]
    rows = arrow_table(source).select(names)
    tables.mirrors(rows)
    request = tables.request(columns, Projection(where, (), ("amount",)))
    assert reconcile(spark, request).state is ReconcileState.EQUAL
    tables.mirrors(rows.set_column(names.index("amount"), "amount", [pa.array([1.0] * len(rows))]))
    result = reconcile(spark, request)
    assert (result.columns, len(result.samples), result.source_rows) == (("amount",), len(rows), len(rows))
    tables.mirrors(rows.slice(0, 0))
    assert {sample.source_rows for sample in reconcile(spark, request).samples} == {1}


def _recreate(tables: Tables, rows: pa.Table, times: list[int] | None = None) -> list[int]:
    """Make the source again with one version, and files of other names beside the old ones; return the log's times."""
    shutil.rmtree(Path(tables.source, "_delta_log"), ignore_errors=True)
    write_deltalake(tables.source, rows)
    log = Path(tables.source, "_delta_log", f"{0:020d}.json")
    log.write_text(log.read_text().ljust(5_000))
    if times:
        os.utime(log, ns=(times[0], times[0]))
    return [log.stat().st_mtime_ns]


@pytest.mark.parametrize("same_time", [False, True])
def test_a_table_made_again_is_compared_as_it_is_now(spark: SparkSession, tmp_path: Path, *, same_time: bool) -> None:
    """Its old data files are still there, and Delta has its old version 0 in memory."""
    tables = Tables(spark, tmp_path)
    columns = [("k", "string")]
    times = _recreate(tables, pa.table({"k": ["a"]}))
    tables.mirrors(pa.table({"k": ["a"]}))
    first = tables.request(columns)
    assert reconcile(spark, first).state is ReconcileState.EQUAL
    _recreate(tables, pa.table({"k": ["b"]}), times if same_time else None)
    if not same_time:
        before = reconcile(spark, first)
        assert (before.state, before.source_rows) == (ReconcileState.DIFFERENT, 1)
        assert "another table id" in before.reason
    now = reconcile(spark, replace(tables.request(columns), opened_for="the next incarnation"))
    assert (now.state, now.reason) == (ReconcileState.DIFFERENT, "")
    assert {sample.key for sample in now.samples} == {("a",), ("b",)}
    tables.mirrors(pa.table({"k": ["b"]}))
    again = replace(tables.request(columns), opened_for="the next incarnation")
    assert reconcile(spark, again).state is ReconcileState.EQUAL
    outdated = reconcile(spark, replace(again, source_id=first.source_id))
    assert (outdated.state, outdated.equal_versions) == (ReconcileState.OUTDATED, None)
