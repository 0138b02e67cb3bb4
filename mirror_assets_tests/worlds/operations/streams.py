"""What a stream writes; there before: 0 to 9, and after it again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets_tests.worlds.operations.operation import Lands, Operation, sql
from mirror_assets_tests.worlds.operations.source import COLUMNS, Source, values


def read(source: Source, rows: DataFrame, name: str) -> DataFrame:
    """The rows as a stream of their own."""
    folder = f"{source.uri}-{name}-{source.version}"
    rows.write.mode("overwrite").parquet(folder)
    return source.spark.readStream.schema(rows.schema).parquet(folder)


def write(source: Source, rows: DataFrame, mode: str) -> None:
    """All that is there of a stream, in one commit."""
    place = f"{source.uri}-checkpoint-{mode}-{source.version}"
    writer = rows.writeStream.format("delta").outputMode(mode).option("checkpointLocation", place)
    writer.trigger(availableNow=True).start(source.uri).awaitTermination()


def summed(rows: DataFrame) -> DataFrame:
    """The sum of each group, which is a row."""
    amount = F.sum("amount").cast("decimal(10, 2)").alias("amount")
    return rows.groupBy("id", "part", "name").agg(amount)


def _rows(source: Source) -> DataFrame:
    """Rows 600 to 602."""
    return read(source, source.query(values(range(600, 603))), "rows")


def _append(source: Source) -> None:
    write(source, _rows(source), "append")


def _complete(source: Source) -> None:
    write(source, summed(_rows(source)), "complete")


OPERATIONS = (
    Operation("streaming append", _append, Lands(inserts=3)),
    Operation("streaming in complete mode", _complete, Lands(updates=3, deletes=10)),
    Operation("insert behind a stream", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(range(10))}"), Lands(inserts=10)),
)
