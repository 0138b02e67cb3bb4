"""Keys that a feed has twice where there can be only one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mirror_assets.delta.columns import quoted
from mirror_assets.delta.feed_columns import COMMIT_VERSION, is_new_row

_SAMPLES = 5


def repeated_key_samples(changes: DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """Sample keys with two old or two new rows in one commit, as readable text."""
    names = {f"key{index}": key for index, key in enumerate(keys)}
    columns = [F.col(quoted(key)).alias(alias) for alias, key in names.items()]
    grouped = changes.select(F.col(COMMIT_VERSION).alias("version"), is_new_row().alias("is_new"), *columns)
    counted = grouped.groupBy("version", "is_new", *names).agg(F.count(F.lit(1)).alias("rows"))
    rows = counted.where("rows > 1").limit(_SAMPLES).collect()
    shown = [", ".join(f"{key}={row[alias]!r}" for alias, key in names.items()) for row in rows]
    return tuple(f"{key} at version {row['version']}" for key, row in zip(shown, rows, strict=True))
