"""Settings for writers: by example, for those who wrote the files, and only where sizes are bad."""

from __future__ import annotations

import pytest

from mirror_assets.direct_lake.advice import Advice, Topic
from mirror_assets.direct_lake.maintenance.bins import FileSizes
from mirror_assets.direct_lake.maintenance.plan_values import Dialect, MaintenanceInput
from mirror_assets.direct_lake.maintenance.writer_settings import (
    delta_rs_settings,
    settings_for_writers,
    spark_settings,
)


def test_sparks_settings_are_statements() -> None:
    settings = spark_settings("t", FileSizes(10, 20), Dialect.DELTA, 4_000_000)
    assert [setting.statement for setting in settings] == [
        "SET parquet.block.row.count.limit = 4000000",
        "SET parquet.block.size = 1073741824",
        "SET spark.databricks.delta.optimize.maxFileSize = 20",
        "SET spark.databricks.delta.optimize.minFileSize = 10",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')",
    ]


def test_fabric_has_settings_of_its_own() -> None:
    plain, fabric = (spark_settings("t", FileSizes(), dialect) for dialect in Dialect)
    assert fabric[: len(plain)] == plain
    assert [setting.statement for setting in fabric[len(plain) :]] == [
        "SET spark.sql.parquet.native.writer.maxRowGroupRowCount = 8000000",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.parquet.vorder.default' = 'true')",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.targetFileSize' = '1024m')",
    ]


def test_delta_rs_takes_arguments() -> None:
    assert [setting.name for setting in delta_rs_settings(FileSizes())] == [
        "max_row_group_size",
        "target_file_size",
        "target_size",
    ]


_SPARK, _RUST = "parquet-mr version 1.17.0 (build x)", "delta-rs version py-1.6.6"


@pytest.mark.parametrize(
    ("topic", "writers", "spark", "rust"),
    [
        (Topic.SMALL_FILES, {_SPARK: 9}, True, False),
        (Topic.ROW_GROUPS, {_RUST: 9}, False, True),
        (Topic.LARGE_FILES, {_SPARK: 1, _RUST: 2}, True, True),
        (Topic.VORDER, {_SPARK: 9, _RUST: 1}, False, False),
    ],
)
def test_they_are_for_who_wrote_the_files(topic: Topic, writers: dict[str, int], spark: bool, rust: bool) -> None:
    found = settings_for_writers("t", [Advice(topic, "", "")], MaintenanceInput(), writers)
    statements = " ".join(setting.statement for setting in found)
    assert ("SET parquet.block.row.count.limit" in statements) is spark
    assert ("WriterProperties" in statements) is rust
