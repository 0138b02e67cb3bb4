"""The hash of landed values: equal for equal rows only."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.columns import projected, row_hash
from mirror_assets.source.schema import ALL_ROWS
from mirror_assets_tests.hashed_values import DIFFERENT, EQUAL
from mirror_assets_tests.spark_4 import IS_SPARK_4

_COLLATED = (
    [
        ("'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE"),
        ("'a' COLLATE UNICODE_RTRIM", "'a ' COLLATE UNICODE_RTRIM"),
    ]
    if IS_SPARK_4
    else []
)


def _hashes(spark: SparkSession, *rows: str, salt: int = 0) -> list[int]:
    frames = [projected(spark.sql(f"SELECT {row}"), ALL_ROWS) for row in rows]
    values = [[(F.col(f"`{name}`"), kind) for name, kind in frame.dtypes] for frame in frames]
    return [frame.select(row_hash(of_row, salt)).collect()[0][0] for frame, of_row in zip(frames, values, strict=True)]


@pytest.mark.parametrize("compiled", ["true", "false"], ids=["compiled", "interpreted"])
def test_only_equal_values_have_equal_hashes(spark: SparkSession, compiled: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", compiled)
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled == "true" else "NO_CODEGEN")
    pairs = [_hashes(session, *(f"{value} AS c" for value in pair)) for pair in EQUAL + DIFFERENT + _COLLATED]
    assert [left == right for left, right in pairs] == [True] * len(EQUAL) + [False] * len(DIFFERENT + _COLLATED)


def test_a_value_that_moves_to_a_null_neighbour_is_another_row(spark: SparkSession) -> None:
    first, second = _hashes(spark, "'a' AS x, CAST(NULL AS STRING) AS y", "CAST(NULL AS STRING) AS x, 'a' AS y")
    assert first != second


def test_a_salt_gives_another_hash(spark: SparkSession) -> None:
    assert _hashes(spark, "1 AS c") != _hashes(spark, "1 AS c", salt=1)
