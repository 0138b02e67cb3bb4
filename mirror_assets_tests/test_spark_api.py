"""What differs between Sparks has the same meaning on each of them: run with another one by `make test SPARK=3.5`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.spark_api import (
    arrow_frame,
    arrow_table,
    condition_of,
    file_metadata,
    for_thread,
    is_classic,
    java_exception,
    lacking_types,
    observed,
    server_trace,
    settings_of,
    sql_state,
    valid_utf8,
)


def test_a_session_of_this_process_is_classic_and_shows_its_secrets(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.hadoop.fs.some.secret.key", "planted")
    assert is_classic(session)
    assert settings_of(session)["spark.hadoop.fs.some.secret.key"] == "planted"


def test_an_exception_has_sparks_condition_and_the_one_of_the_jvm(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.read.parquet(str(tmp_path / "none"))
    java = java_exception(raised.value)
    assert condition_of(raised.value) == "PATH_NOT_FOUND"
    assert java is not None
    assert java.getClass().getSimpleName() == "AnalysisException"
    assert server_trace(raised.value) == ""


@pytest.mark.usefixtures("spark")
def test_a_condition_of_a_value_has_its_state_also_where_no_message_says_it() -> None:
    assert (sql_state("DIVIDE_BY_ZERO"), sql_state("NO_CONDITION_OF_SPARK")) == ("22012", "")


class _DeadJvm:
    def __getattr__(self, name: str) -> object:
        raise Py4JNetworkError(name)


def test_a_jvm_that_has_died_is_asked_for_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_jvm", _DeadJvm())
    assert sql_state("DIVIDE_BY_ZERO") == ""


def test_what_fails_in_the_thread_that_waits_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Observation, "get", property(lambda _: _DeadJvm().counts))
    with pytest.raises(Py4JNetworkError):
        observed(Observation())


def test_work_of_another_thread_has_the_description_of_this_one(spark: SparkSession) -> None:
    context, told = spark.sparkContext, list[str | None]()
    context.setJobDescription("a table")
    try:
        work = for_thread(spark, lambda: told.append(context.getLocalProperty("spark.job.description")))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
    finally:
        context.setJobDescription(None)
    assert told == ["a table"]


def test_metadata_of_files_is_found_beside_a_column_of_its_name(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).selectExpr("id AS _metadata").write.parquet(str(tmp_path / "t"))
    rows = spark.read.parquet(str(tmp_path / "t"))
    found = rows.select("_metadata", file_metadata(rows, "row_index"), file_metadata(rows, "file_name")).collect()
    (file,) = (tmp_path / "t").glob("*.parquet")
    assert [tuple(row) for row in found] == [(at, at, file.name) for at in range(3)]


def test_a_table_of_arrow_keeps_its_values_and_types(spark: SparkSession) -> None:
    table = pa.table(
        {
            "text": pa.array(["x", None]),
            "number": pa.array([2**53 + 1, None], pa.int64()),
            "small": pa.array([1, 2], pa.int32()),
            "words": pa.array([np.array([2**62, -1]), None], pa.list_(pa.int64())),
        }
    )
    frame = arrow_frame(spark, table)
    assert frame.schema.simpleString() == "struct<text:string,number:bigint,small:int,words:array<bigint>>"
    assert [row.asDict() for row in frame.collect()] == arrow_table(frame).to_pylist() == table.to_pylist()


def test_a_table_without_rows_keeps_its_columns(spark: SparkSession) -> None:
    assert arrow_table(spark.range(3).where("id > 5")).schema.names == ["id"]


_NO_ROWS = {
    "by a shuffle": lambda rows: rows.where("id > 1000"),
    "by a constant": lambda rows: rows.where("1 = 0"),
    "by a value that can't be": lambda rows: rows.where("length(text) IS NULL"),
}


@pytest.mark.parametrize("way", _NO_ROWS)
def test_rows_are_counted_where_none_of_them_is_left(adaptive_spark: SparkSession, tmp_path: Path, way: str) -> None:
    """Without this project's settings, no Spark has these counts, and Spark 3.5 and 4.0 wait for them without end."""
    read, left = Observation(), Observation()
    count = F.count(F.lit(1)).alias("rows")
    frame = adaptive_spark.range(0, 100, 1, 4).withColumn("text", F.expr("string(id)")).observe(read, count)
    window = Window.partitionBy("text").orderBy("id")
    rows: DataFrame = _NO_ROWS[way](frame).repartition(3, "text")
    rows.withColumn("at", F.row_number().over(window)).observe(left, count).write.parquet(str(tmp_path / "t"))
    assert (observed(read), observed(left)) == ({"rows": 100}, {"rows": 0})


def test_counts_that_never_come_are_an_error(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.setattr("mirror_assets.spark_api._EVENT_SECONDS", 0.1)
    never = Observation()
    spark.range(1).observe(never, F.count(F.lit(1)).alias("rows"))
    with pytest.raises(PySparkException, match="sent no counts"):
        observed(never)


def _schema(kind: object) -> str:
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in (("a", "string"), ("b", kind))
    ]
    return json.dumps({"type": "struct", "fields": fields})


def test_a_column_of_an_unknown_type_is_named() -> None:
    assert lacking_types(_schema("integer")) == ()
    unknown = {"type": "array", "elementType": "blob", "containsNull": True}
    ((column, why),) = lacking_types(_schema(unknown))
    assert column == "b"
    assert "it has no such type" in why
    assert "blob" in why


def test_bytes_that_are_no_text_become_the_sign_for_it(spark: SparkSession) -> None:
    row = spark.range(1).select(valid_utf8(F.expr("CAST(X'61FF62' AS STRING)")), valid_utf8(F.lit("ä"))).collect()[0]
    assert tuple(row) == ("a\ufffdb", "ä")
