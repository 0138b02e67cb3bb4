"""Rows of changed keys: the same for few keys as for many, whose plan broadcasts a map of fixed size and no keys."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode import rows_of_keys as module
from mirror_assets.encode.columns import HelperNames
from mirror_assets.encode.rows_of_keys import rows_of_keys
from mirror_assets.source.schema import LandedColumn

_OURS = HelperNames.beside([LandedColumn("id", "bigint"), LandedColumn("name", "string"), LandedColumn("value", "int")])
_KEYS = {"id": "k0", "name": "k1"}
_HAS_ROW = "there"
_Key = tuple[int | None, str | None]


def _sides(spark: SparkSession, draw: random.Random) -> tuple[DataFrame, DataFrame, dict[_Key, int | None]]:
    """Changed keys, of which some have no row; rows of these and many other keys; and the value of each changed key."""
    every = [(draw.choice([None, *range(40)]), draw.choice([None, "", "a", "b", "ä" * 50])) for _ in range(150)]
    values = {key: draw.randrange(1000) for key in every}
    changed: dict[_Key, int | None] = {key: values[key] for key in draw.sample(list(values), 60)}
    gone = draw.sample(list(changed), 15)
    changed |= dict.fromkeys(gone)
    rows = [(*key, value) for key, value in values.items() if key not in gone]
    keys = [(*key, value is not None) for key, value in changed.items()]
    return (
        spark.createDataFrame(keys, "k0 BIGINT, k1 STRING, there BOOLEAN"),
        # A file may have a narrower type than the comparison of both versions.
        spark.createDataFrame(rows, "id INT, name STRING, value INT").repartition(3),
        changed,
    )


@pytest.mark.parametrize("is_few", [True, False], ids=["few", "many"])
@pytest.mark.parametrize("words", [1, module._WORDS])
def test_each_key_has_its_row_whatever_the_map_lets_pass(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, words: int, is_few: bool
) -> None:
    monkeypatch.setattr(module, "_WORDS", words)
    changed, rows, expected = _sides(spark, random.Random(words))
    found = rows_of_keys(changed, F.col(_HAS_ROW), rows, _KEYS, _OURS, 3, is_few=is_few)
    collected = found.withColumn("part", F.spark_partition_id()).collect()
    assert {(row["k0"], row["k1"]): row["value"] for row in collected} == expected
    assert len(collected) == len(expected)
    assert all((row[_OURS.is_found] == 1) == row[_HAS_ROW] for row in collected)
    assert len({row["part"] for row in collected}) == found.rdd.getNumPartitions() == 3


def test_the_map_does_not_grow_with_the_keys(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORDS", 16)
    sizes = []
    for keys in (1, 100, 10_000):
        map_ = module._map_of_keys(spark.range(keys).select(F.xxhash64("id").alias(_OURS.key_hash)), _OURS)
        sizes.append((map_.count(), map_.selectExpr(f"sum(bit_count({_OURS.bits}))").collect()[0][0]))
    assert sizes == [(1, 1), (16, sizes[1][1]), (16, 16 * 64)]
    assert 90 < sizes[1][1] <= 100


@pytest.mark.parametrize("key", ["id", "nullif(id, 5)"], ids=["not null", "nullable"])
@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_many_keys_are_joined_by_one_shuffle_of_each_side(spark: SparkSession, key: str, adaptive: str) -> None:
    """Three times the keys, three times the tasks; and no broadcast but that of the map."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    changed = session.range(50).selectExpr(f"{key} AS k0", "true AS there")
    rows = session.range(100).selectExpr(f"{key} AS id", "id AS value").repartition(4)
    for parts in (5, 15):
        found = rows_of_keys(changed, F.col(_HAS_ROW), rows, {"id": "k0"}, _OURS, parts, is_few=False)
        plan = found._jdf.queryExecution().executedPlan().toString()
        by_hash = [line for line in plan.splitlines() if "Exchange hashpartitioning" in line and "_hash" in line]
        assert len(by_hash) == 2
        assert all(f", {parts})" in line for line in by_hash)
        assert (plan.count("SortMergeJoin"), plan.count("BroadcastExchange"), plan.count("ShuffledHashJoin")) == (
            1,
            1,
            0,
        )
        # The map's own shuffle is the only other one.
        assert plan.count("Exchange hashpartitioning") == 3
        assert found.rdd.getNumPartitions() == parts
        # Spark may plan the join again with the default number of partitions; these become as many files.
        assert f"Coalesce {parts}" in plan
