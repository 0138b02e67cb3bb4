"""One small lake for all tests of the room: January and February, built over the remains of an older build."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.config import load_config
from mirror_assets.demo.config import write_config
from mirror_assets.demo.lake import begin_lake, build_lake

MONTHS = range(1, 3)


@dataclass(frozen=True)
class Demo:
    """The lake, what the build reported, and the keys that its mirror.yaml names."""

    spark: SparkSession
    root: Path
    reports: tuple[str, ...]
    keys: dict[str, tuple[str, ...]]

    def path(self, table: str) -> str:
        return str(self.root / "lake" / table)

    def operations(self, table: str) -> list[str]:
        history = DeltaTable.forPath(self.spark, self.path(table)).history().select("version", "operation").collect()
        return [str(row.operation) for row in sorted(history, key=lambda row: int(row.version))]

    def rows(self, table: str, version: int | None = None) -> DataFrame:
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path(table))

    def feed(self, table: str, first: int = 0, last: int | None = None) -> DataFrame:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
        return (reader if last is None else reader.option("endingVersion", last)).load(self.path(table))

    def changes(self, table: str, version: int) -> list[tuple[str, ...]]:
        """Kind and key of each row in one version's feed, sorted."""
        rows = self.feed(table, version, version).select("_change_type", *self.keys[table]).collect()
        return sorted(tuple(str(value) for value in row) for row in rows)


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    root = tmp_path_factory.mktemp("demo") / "a folder"
    begin_lake(spark, root, lambda _: None, MONTHS)
    reports: list[str] = []
    build_lake(spark, root, reports.append, MONTHS)
    config = load_config(write_config(root), environment={})
    keys = {name.removeprefix("nycflights."): config.table(name).keys for name in config.tables}
    return Demo(spark, root, tuple(reports), keys)
