"""Settings for writers, by example; that they work is shown on real tables."""

from __future__ import annotations

from mirror_assets.direct_lake.maintenance.bins import FileSizes
from mirror_assets.direct_lake.maintenance.plan_values import Dialect
from mirror_assets.direct_lake.maintenance.writer_settings import delta_rs_settings, spark_settings


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
