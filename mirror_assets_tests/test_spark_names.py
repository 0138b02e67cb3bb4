"""Addresses for Spark: local paths stay on this machine, and names with odd characters are taken literally."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.spark_names import quoted, spark_path, table_at

_ODD = ["a b", "100%", "%20", "a#b", "[x]", "{y}", "a*b", "ü 🦆", "a+b,c;d", "q?", "it's", "part=a%2Fb", "a:b"]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/lake/a b", "file:///lake/a b"),
        ("/lake/100%25", "file:///lake/100%25"),
        ("file:/lake/a%20b", "file:///lake/a b"),
        ("file:///lake/%2520", "file:///lake/%20"),
        ("s3://bucket/a b", "s3://bucket/a b"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("hdfs://name:8020/x", "hdfs://name:8020/x"),
    ],
)
def test_addresses(address: str, expected: str) -> None:
    assert spark_path(address) == expected


def test_a_relative_path_begins_where_the_process_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark_path("lake/t") == f"file://{tmp_path}/lake/t"


@pytest.mark.parametrize("name", _ODD)
def test_spark_and_delta_take_odd_names_literally(name: str, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / name
    spark.range(3).write.format("delta").save(spark_path(str(folder / "t")))
    assert (folder / "t" / "_delta_log").is_dir()
    assert spark.read.format("delta").load(spark_path(str(folder / "t"))).count() == 3
    spark.range(3).coalesce(1).write.parquet(spark_path(str(folder / "p")))
    (file,) = (folder / "p").glob("*.parquet")
    assert spark.read.option("__globPaths__", "false").parquet(spark_path(str(file))).count() == 3


def test_backticks_are_doubled() -> None:
    assert quoted("a b`c.d") == "`a b``c.d`"
    assert table_at("/la`ke/t") == "delta.`/la``ke/t`"
