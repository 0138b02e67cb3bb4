"""The demo's lake of January and February, and the whole feed of each of its tables.

`make test` builds the two smallest tables, `make soak` all five.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.config.load import load_config
from mirror_assets.features.demo.claim import write_config
from mirror_assets.features.demo.with_spark.demo_lake import begin_lake, continue_lake
from mirror_assets.features.demo.with_spark.histories import AIRLINES, AIRPORTS, HISTORIES, History
from mirror_assets.spark_api import arrow_table

MONTHS = range(1, 3)
_SOAKED = pytest.param(HISTORIES, marks=pytest.mark.soak, id="all tables")
# For tests of the other tables.
all_tables = pytest.mark.parametrize("demo", [_SOAKED], indirect=True)


def rows_at(root: Path, table: str, version: int | None = None) -> pa.Table:
    """A version's rows as delta-rs reads them: not the reader that the build used."""
    reader = DeltaTable(root / "lake" / table, version=version).scan()
    plain = {pa.string_view(): pa.string()}
    found = pa.table(reader)
    return found.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in found.schema]))


@dataclass(frozen=True)
class Demo:
    """The lake, what the build reported, the keys that its mirror.yaml names, and the feeds from version 0 on."""

    root: Path
    histories: tuple[History, ...]
    reports: tuple[str, ...]
    keys: dict[str, tuple[str, ...]]
    feeds: dict[str, pa.Table]

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(history.table for history in self.histories)

    def operations(self, table: str) -> list[str]:
        return [str(entry["operation"]) for entry in reversed(DeltaTable(self.root / "lake" / table).history())]

    def rows(self, table: str, version: int | None = None) -> pa.Table:
        return rows_at(self.root, table, version)

    def changes(self, table: str, version: int) -> list[tuple[str, ...]]:
        """Kind and key of each row in one version's feed, sorted."""
        feed = self.feeds[table]
        rows = feed.filter(pc.equal(feed["_commit_version"], version)).select(["_change_type", *self.keys[table]])
        return sorted(tuple(str(value) for value in row.values()) for row in rows.to_pylist())


@pytest.fixture(scope="session", params=[pytest.param((AIRLINES, AIRPORTS), id="two tables"), _SOAKED])
def demo(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    root, histories = tmp_path_factory.mktemp("demo") / "a folder", request.param
    reports: list[str] = []
    begin_lake(spark, root, reports.append, MONTHS, histories)
    continue_lake(spark, root, reports.append, MONTHS, histories)
    config = load_config(write_config(root))
    tables = [history.table for history in histories]
    keys = {table: config.table(f"nycflights.{table}").keys for table in tables}
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    feeds = {table: arrow_table(feed.load(str(root / "lake" / table))) for table in tables}
    return Demo(root, histories, tuple(reports), keys, feeds)
