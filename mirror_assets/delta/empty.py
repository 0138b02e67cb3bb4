"""Encodes no rows: one typed file with which a table begins of which nothing has landed yet.

A table whose folder has no data file counts as failing after a while, and can stop the whole mirrored database
(reference `users` §6). Spark writes the file, as it does all others, so its types are those of the rows to come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.delta.columns import described
from mirror_assets.delta.spark_errors import spark_errors
from mirror_assets.delta.write import write_parts
from mirror_assets.source.schema import LandedColumn


def encode_no_rows(
    spark: SparkSession, columns: Sequence[LandedColumn], folder: str, compression: str, footer: Mapping[str, str]
) -> None:
    """Write one file with the columns, without marker column and rows, into `folder`. Raises SparkFailed and its like.

    No table is read.
    """
    typed = [F.lit(None).cast(column.type).alias(column.name) for column in columns]
    with spark_errors(folder):
        nothing = spark.range(0, 0, 1, 1).select(*typed)
        write_parts(nothing.select(*described(columns, footer)), folder, compression)
