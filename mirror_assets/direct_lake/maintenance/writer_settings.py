"""Settings for whoever writes a table that Direct Lake reads: how large row groups and files become.

The effects were measured with Spark 4.2, Delta 4.4 and Parquet 1.17, of row groups on 2,000,000 rows (reference
`direct-lake` §5); those of Fabric alone are its documentation's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirror_assets.direct_lake.advice import Advice, Topic
from mirror_assets.direct_lake.maintenance.bins import FileSizes
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, MaintenanceInput

# Direct Lake makes a segment of each row group; 1 to 16 million rows are good, 8 million the advice for large tables.
ROW_GROUP_ROWS = 8_000_000
_GIB = 2**30
_SIZES = (Topic.SMALL_FILES, Topic.LARGE_FILES, Topic.ROW_GROUPS)
# How footers of delta-rs, and of Arrow's Rust below it, begin their `created_by`.
_DELTA_RS = ("delta-rs", "parquet-rs")


@dataclass(frozen=True)
class WriterSetting:
    """A setting, how to make it, and what it did when it was measured, or should do by the documentation."""

    name: str
    statement: str
    effect: str


def settings_for_writers(
    table: str, advice: Iterable[Advice], wanted: MaintenanceInput, writers: Mapping[str, int]
) -> tuple[WriterSetting, ...]:
    """Return settings for those who wrote the files (counted by `created_by`); none where sizes are fine."""
    if not any(one.topic in _SIZES for one in advice):
        return ()
    by_delta_rs = [name.startswith(_DELTA_RS) for name in writers]
    spark = () if all(by_delta_rs) else spark_settings(table, wanted.sizes, wanted.dialect)
    return (*spark, *(delta_rs_settings(wanted.sizes) if any(by_delta_rs) else ()))


def spark_settings(
    table: str, sizes: FileSizes, dialect: Dialect, row_group_rows: int = ROW_GROUP_ROWS
) -> tuple[WriterSetting, ...]:
    """Return the settings for Spark, `table` as SQL names it: first those of row groups, then those of files.

    A DataFrame's option `parquet.block.size` is not among them: Delta ignores it (measured).
    """
    settings = (
        _set(
            "parquet.block.row.count.limit",
            row_group_rows,
            "row groups of just so many rows: 500000 made four of 500,000",
        ),
        _set(
            "parquet.block.size",
            _GIB,
            "a row group ends at so many bytes in memory, if that is earlier: the default of 128 MiB made one of "
            "2,000,000 rows, 4 MiB made four of 510,100",
        ),
        _set(
            "spark.databricks.delta.optimize.maxFileSize",
            sizes.max_bytes,
            "OPTIMIZE fills files up to so many bytes (1 GiB)",
        ),
        _set(
            "spark.databricks.delta.optimize.minFileSize",
            sizes.min_bytes,
            "OPTIMIZE leaves files of so many bytes alone (1 GiB)",
        ),
        _property(
            table, "delta.autoOptimize.optimizeWrite", "true", "fewer files in partitions: 10 were written for 40"
        ),
    )
    if dialect is not Dialect.FABRIC:
        return settings
    size = f"{sizes.max_bytes // 2**20}m"
    native = "spark.sql.parquet.native.writer.maxRowGroupRowCount"
    return (
        *settings,
        _set(native, row_group_rows, "the same for the native execution engine"),
        _property(table, "delta.parquet.vorder.default", "true", "new files are V-Ordered; new workspaces don't"),
        _property(table, "delta.targetFileSize", size, "one size for OPTIMIZE, auto compaction and writes"),
    )


def delta_rs_settings(sizes: FileSizes) -> tuple[WriterSetting, ...]:
    """The same for delta-rs (`deltalake` in Python), as arguments."""
    rows, size = f"WriterProperties(max_row_group_size={ROW_GROUP_ROWS})", sizes.max_bytes
    compact = f"DeltaTable(…).optimize.compact(target_size={size}, writer_properties={rows})"
    return (
        WriterSetting("max_row_group_size", f"write_deltalake(…, writer_properties={rows})", "rows in a row group"),
        WriterSetting("target_file_size", f"write_deltalake(…, target_file_size={size})", "bytes of a file"),
        WriterSetting("target_size", compact, "as above"),
    )


def _set(name: str, value: int, effect: str) -> WriterSetting:
    return WriterSetting(name, f"SET {name} = {value}", effect)


def _property(table: str, name: str, value: str, effect: str) -> WriterSetting:
    return WriterSetting(name, f"ALTER TABLE {table} SET TBLPROPERTIES ('{name}' = '{value}')", effect)
