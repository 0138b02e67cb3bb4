"""Random histories of a keyed Delta table: what the encoder's and the reader's tests run on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

_KEYS = 40
_PROPERTIES = "delta.enableChangeDataFeed = true, delta.enableDeletionVectors = {vectors}"


@dataclass(frozen=True)
class History:
    """A table at `uri` whose newest version is `tip`."""

    uri: str
    tip: int


def random_history(spark: SparkSession, path: Path, *, seed: int, commits: int, deletion_vectors: bool) -> History:
    """A table (id, part, name, amount) with unique ids after each of about `commits` random statements."""
    uri, draw = str(path), random.Random(seed)
    properties = _PROPERTIES.format(vectors=str(deletion_vectors).lower())
    spark.sql(
        f"CREATE TABLE delta.`{uri}` (id INT, part INT, name STRING, amount DECIMAL(10, 2)) USING delta "
        f"PARTITIONED BY (part) TBLPROPERTIES ({properties})"
    )
    _insert(spark, uri, draw)
    for _ in range(commits):
        draw.choice(_STATEMENTS)(spark, uri, draw)
    return History(uri, int(DeltaTable.forPath(spark, uri).history(1).collect()[0]["version"]))


def _insert(spark: SparkSession, uri: str, draw: random.Random) -> None:
    spark.sql(
        f"INSERT INTO delta.`{uri}` SELECT id, id % 3, concat('n', id), id / 7 FROM range({_KEYS}) "
        f"WHERE hash(id, {draw.randrange(99)}) % 2 = 0 AND id NOT IN (SELECT id FROM delta.`{uri}`)"
    )


def _update(spark: SparkSession, uri: str, draw: random.Random) -> None:
    spark.sql(f"UPDATE delta.`{uri}` SET amount = amount + {draw.randrange(9)} WHERE id % 5 = {draw.randrange(5)}")


def _move(spark: SparkSession, uri: str, draw: random.Random) -> None:
    spark.sql(f"UPDATE delta.`{uri}` SET part = (part + 1) % 3 WHERE id % 4 = {draw.randrange(4)}")


def _swap_keys(spark: SparkSession, uri: str, draw: random.Random) -> None:
    low = draw.randrange(0, _KEYS, 2)
    spark.sql(f"UPDATE delta.`{uri}` SET id = {2 * low + 1} - id WHERE id IN ({low}, {low + 1})")


def _delete(spark: SparkSession, uri: str, draw: random.Random) -> None:
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE id % 6 = {draw.randrange(6)}")


def _delete_partition(spark: SparkSession, uri: str, draw: random.Random) -> None:
    spark.sql(f"DELETE FROM delta.`{uri}` WHERE part = {draw.randrange(3)}")


def _merge(spark: SparkSession, uri: str, draw: random.Random) -> None:
    step = draw.randrange(2, 5)
    spark.sql(
        f"MERGE INTO delta.`{uri}` t USING (SELECT CAST(id * {step} AS INT) id FROM range(8)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = concat(name, '!') "
        "WHEN NOT MATCHED THEN INSERT (id, part, name, amount) VALUES (s.id, s.id % 3, 'merged', 1)"
    )


def _replace_rows(spark: SparkSession, uri: str, draw: random.Random) -> None:
    """Delete and insert the same keys in one commit."""
    part = draw.randrange(3)
    rows = spark.sql(f"SELECT id, part, concat(name, '~') name, amount FROM delta.`{uri}` WHERE part = {part}")
    kept = spark.createDataFrame(rows.collect(), rows.schema)
    kept.write.format("delta").mode("overwrite").option("replaceWhere", f"part = {part}").save(uri)


def _restore(spark: SparkSession, uri: str, draw: random.Random) -> None:
    tip = int(DeltaTable.forPath(spark, uri).history(1).collect()[0]["version"])
    DeltaTable.forPath(spark, uri).restoreToVersion(draw.randrange(max(1, tip - 3), tip + 1))


def _optimize(spark: SparkSession, uri: str, _draw: random.Random) -> None:
    DeltaTable.forPath(spark, uri).optimize().executeCompaction()


_STATEMENTS: tuple[Callable[[SparkSession, str, random.Random], None], ...] = (
    _insert,
    _update,
    _move,
    _swap_keys,
    _delete,
    _delete_partition,
    _merge,
    _replace_rows,
    _restore,
    _optimize,
)
