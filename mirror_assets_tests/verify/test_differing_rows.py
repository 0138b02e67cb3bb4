"""Hashes of rows, their sums by bucket of keys, and the rows of buckets that differ."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.verify.differing_rows import COUNTS, BucketTotals, Sides, bucket_totals, differing_rows, row_hash
from mirror_assets_tests.hashed_values import DIFFERENT, EQUAL


def _hashes(spark: SparkSession, *rows: str, salt: int = 0) -> list[int]:
    frames = [spark.sql(f"SELECT {row}") for row in rows]
    return [frame.select(row_hash(frame, frame.columns, salt)).collect()[0][0] for frame in frames]


@pytest.mark.parametrize("compiled", ["true", "false"], ids=["compiled", "interpreted"])
def test_only_equal_values_have_equal_hashes(spark: SparkSession, compiled: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", compiled)
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled == "true" else "NO_CODEGEN")
    pairs = [_hashes(session, *(f"{value} AS c" for value in pair)) for pair in EQUAL + DIFFERENT]
    assert [left == right for left, right in pairs] == [True] * len(EQUAL) + [False] * len(DIFFERENT)


def test_a_value_that_moves_to_a_null_neighbour_is_another_row(spark: SparkSession) -> None:
    first, second = _hashes(spark, "'a' AS x, CAST(NULL AS STRING) AS y", "CAST(NULL AS STRING) AS x, 'a' AS y")
    assert first != second


def test_a_salt_gives_another_hash(spark: SparkSession) -> None:
    assert _hashes(spark, "1 AS c") != _hashes(spark, "1 AS c", salt=1)


def _side(rows: DataFrame, counts: str = "true") -> DataFrame:
    return rows.withColumn(COUNTS, F.expr(counts))


def _differing(ours: BucketTotals, theirs: BucketTotals) -> frozenset[int]:
    return frozenset(bucket for bucket in ours.keys() | theirs.keys() if ours.get(bucket) != theirs.get(bucket))


def test_only_rows_of_differing_buckets_are_compared(spark: SparkSession) -> None:
    source = _side(spark.range(200).selectExpr("id AS c0", "id AS c1"))
    mirror = _side(source.selectExpr("c0", "IF(c0 < 100, -1, c1) AS c1"))
    differing = _differing(*(bucket_totals(side, ["c0"]) for side in (source, mirror)))
    assert 90 < len(differing) <= 100
    sides = Sides(source, mirror, ("c0",))
    found = [differing_rows(sides, frozenset(chosen)).count() for chosen in (differing, sorted(differing)[:9])]
    assert found[0] == 100
    assert 9 <= found[1] < 20


def test_rows_that_do_not_count_are_neither_summed_nor_compared(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("id AS c0", "id AS c1")
    source, mirror = _side(rows, "c0 < 50"), _side(rows.where("c0 < 50"))
    ours, theirs = (bucket_totals(side, ["c0"]) for side in (source, mirror))
    assert ours == theirs
    assert sum(total[0] for total in ours.values()) == 50
    sides = Sides(source, mirror, ("c0",))
    for buckets in (range(1 << 14), sorted(ours)[:20]):
        assert differing_rows(sides, frozenset(buckets)).count() == 0
    lost = Sides(source, mirror.where("c0 <> 7"), ("c0",))
    (row,) = differing_rows(lost, frozenset(ours)).collect()
    assert (row["c0"], row["source_rows"], row["mirror_rows"]) == (7, 1, 0)
