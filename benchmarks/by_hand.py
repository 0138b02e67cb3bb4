"""What people write today to land a change feed: right for most feeds, in one file, with two shuffles and one core."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets_tests.delta_reader import read_changes


def land_by_hand(spark: SparkSession, uri: str, key: str, versions: tuple[int, int], folder: Path) -> None:
    """Read the feed, keep one row per key and commit, order by commit, write one file, give it its number."""
    one_file(marked(read_changes(spark, uri, *versions), key), folder)


def marked(feed: DataFrame, key: str) -> DataFrame:
    """One row per key and commit, with its row marker, in order."""
    rank = F.when(F.col(CHANGE_TYPE) == "delete", 0).otherwise(1)
    newest = Window.partitionBy(key, COMMIT_VERSION).orderBy(rank.desc())
    kind = F.create_map(
        *(F.lit(value) for pair in (("insert", 0), ("update_postimage", 1), ("delete", 2)) for value in pair)
    )
    return (
        feed.where(F.col(CHANGE_TYPE) != "update_preimage")
        .withColumn("_rank", F.row_number().over(newest))
        .where("_rank = 1")
        .orderBy(COMMIT_VERSION, key)
        .withColumn("__rowMarker__", kind[F.col(CHANGE_TYPE)])
        .drop("_rank", CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
    )


def one_file(rows: DataFrame, folder: Path) -> None:
    """Write the rows as landing file 1 of the folder."""
    rows.coalesce(1).write.option("compression", "zstd").parquet(str(folder / "_staged"))
    (written,) = (folder / "_staged").glob("part-*.parquet")
    written.rename(folder / f"{1:020}.parquet")
