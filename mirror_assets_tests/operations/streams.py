"""What a stream writes; there before: 0 to 9, and after it again."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets_tests.operations.operation import Lands, Operation, sql
from mirror_assets_tests.operations.source import COLUMNS, Source, values


def _rows(source: Source) -> DataFrame:
    """Rows 600 to 602 as a stream."""
    folder = Path(f"{source.uri}-stream")
    if not folder.exists():
        source.spark.sql(values(range(600, 603))).write.parquet(str(folder))
    return source.spark.readStream.schema(source.spark.read.parquet(str(folder)).schema).parquet(str(folder))


def _write(source: Source, rows: DataFrame, mode: str) -> None:
    place = f"{source.uri}-checkpoint-{mode}"
    writer = rows.writeStream.format("delta").outputMode(mode).option("checkpointLocation", place)
    writer.trigger(availableNow=True).start(source.uri).awaitTermination()


def _append(source: Source) -> None:
    _write(source, _rows(source), "append")


def _complete(source: Source) -> None:
    counted = _rows(source).groupBy("id", "part", "name").agg(F.sum("amount").cast("decimal(10, 2)").alias("amount"))
    _write(source, counted, "complete")


OPERATIONS = (
    Operation("streaming append", _append, Lands(inserts=3)),
    Operation("streaming in complete mode", _complete, Lands(updates=3, deletes=10)),
    Operation("insert behind a stream", sql(f"INSERT INTO {{t}} ({COLUMNS}) {values(range(10))}"), Lands(inserts=10)),
)
