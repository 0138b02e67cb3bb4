"""Keys with a collation, as Databricks writes them: a key that changes only in its case leaves no row behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets_tests.lab import Lab
from mirror_assets_tests.smoke import smoke_first

# Delta's open-source writer refuses collations; its readers take them.
_WRITES_ANY_TYPE = "spark.databricks.delta.schema.typeCheck.enabled"
_STATEMENTS = (
    "UPDATE {t} SET id = 'A' WHERE id = 'a'",
    "UPDATE {t} SET id = upper(id), name = 'two' WHERE name = 'b'",
    "MERGE INTO {t} USING (SELECT 'C' COLLATE UTF8_LCASE c) ON id = c WHEN MATCHED THEN UPDATE SET id = c, name = 'x'",
    # Two rows of one key for the collation, in one commit.
    "INSERT INTO {t} VALUES ('d', 'd', 4), ('D', 'D', 5)",
    "DELETE FROM {t} WHERE name = 'd'",
    # Deletes `C` and inserts `c` in one commit.
    "INSERT OVERWRITE {t} SELECT if(name = 'x', lower(id), id), name, amount FROM {t}",
)


@pytest.fixture
def lab(adaptive_spark: SparkSession, tmp_path: Path) -> Lab:
    return Lab(adaptive_spark, tmp_path)


def _create(lab: Lab) -> None:
    lab.spark.conf.set(_WRITES_ANY_TYPE, "false")
    lab.sql(
        "CREATE TABLE {t} (id STRING COLLATE UTF8_LCASE, name STRING COLLATE UNICODE_RTRIM, amount INT) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableRowTracking = true)",
        "INSERT INTO {t} VALUES ('a', 'a', 1), ('b', 'b', 2), ('c', 'c', 3)",
    )


@pytest.mark.parametrize(
    "setting",
    smoke_first(["changes: files", "compact: true", "changes: row_tracking", "changes: feed"]),
)
def test_each_way_compares_keys_by_their_bytes(lab: Lab, setting: str) -> None:
    lab.configure(setting, "slices: {max_commits: 100}")
    _create(lab)
    assert lab.mirror()
    assert lab.is_equal
    lab.sql(*_STATEMENTS)
    assert lab.mirror()
    assert lab.is_equal
