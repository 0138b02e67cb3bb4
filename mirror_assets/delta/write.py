"""Writes parts with Spark's own Parquet writer: nothing but JVM operators runs on executors."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from mirror_assets.delta.spark_errors import spark_error

_ROW_GROUP_BYTES = 256 << 20


def write_parts(frame: DataFrame, folder: str, compression: str) -> None:
    """Write each Spark partition of `frame` as one Parquet file into the new `folder`.

    Raises DataFileMissing when a file that the feed needs is gone, SparkOutOfSpace, and SparkFailed.
    """
    try:
        (
            frame.write.option("compression", compression)
            .option("maxRecordsPerFile", 0)
            .option("parquet.block.size", _ROW_GROUP_BYTES)
            .option("mapreduce.fileoutputcommitter.algorithm.version", 2)
            .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
            .parquet(folder)
        )
    except (PySparkException, Py4JJavaError) as error:
        raise spark_error(error, folder) from error
