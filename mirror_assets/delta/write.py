"""Writes parts with Spark's own Parquet writer: nothing but JVM operators runs on executors."""

from __future__ import annotations

from pyspark.sql import DataFrame

_ROW_GROUP_BYTES = 256 << 20


def write_parts(frame: DataFrame, folder: str, compression: str, most_rows: int = 0) -> None:
    """Write each Spark partition of `frame` as one Parquet file into the new `folder`. Raises what Spark raises.

    With `most_rows`, a partition that has more rows becomes several files, whose names sort as they were written.
    """
    (
        frame.write.option("compression", compression)
        .option("maxRecordsPerFile", most_rows)
        .option("parquet.block.size", _ROW_GROUP_BYTES)
        # A landing file is read once: it isn't worth a fifth of the encoder's CPU time (docs/performance.md).
        .option("parquet.enable.dictionary", "false")
        .option("mapreduce.fileoutputcommitter.algorithm.version", 2)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(folder)
    )
