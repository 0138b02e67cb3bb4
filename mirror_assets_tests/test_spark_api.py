"""What differs between Sparks has the same meaning on each of them: run with another one by `make test SPARK=3.5`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
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
    server_trace,
    settings_of,
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
