"""What a history is made of: steps, each of which is exactly one commit of one table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.spark_paths import spark_path

# A mirror that was away for weeks must still find the feed: Delta refuses to read it once it is older than this.
_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.deletedFileRetentionDuration": "interval 60 days",
    "delta.logRetentionDuration": "interval 60 days",
}


@dataclass(frozen=True)
class DemoLake:
    """The folder of the lake, and the folder of the delivered Parquet files that it is built from."""

    lake: Path
    delivered: Path
    months: range

    def table(self, name: str) -> Path:
        """The folder of one Delta table."""
        return self.lake / name

    def versions(self, name: str) -> int:
        """How many versions the table has; none before its first load."""
        folder = str(self.table(name))
        return DeltaTable(folder).version() + 1 if DeltaTable.is_deltatable(folder) else 0

    def delivery(self, name: str) -> Path:
        """The Parquet file with the delivered rows of one table."""
        return self.delivered / f"{name}.parquet"

    def fill(self, statement: str, table: str) -> str:
        """The statement with its names replaced.

        `{table}` is the Delta table, `{flights}` and the like what was delivered, `{second_half}` the first month that
        the first load leaves out, `{late_day}` a day that arrives late, `{properties}` every table's properties.
        """
        names = {file.stem: _quoted("parquet", file) for file in self.delivered.glob("*.parquet")}
        return statement.format(
            table=_quoted("delta", self.table(table)),
            second_half=self.months[len(self.months) // 2],
            late_day=f"DATE'{date(2013, self.months[0], 15)}'",
            properties=", ".join(f"'{name}' = '{value}'" for name, value in _PROPERTIES.items()),
            **names,
        )


def _quoted(source: str, path: Path) -> str:
    """A path as Spark SQL reads it: the name of a data source and the path between backticks."""
    escaped = spark_path(str(path)).replace("`", "``")
    return f"{source}.`{escaped}`"


class Step(Protocol):
    """One commit, with what it means in the airline's world."""

    @property
    def what(self) -> str:
        """What happened, for people."""

    def commit(self, spark: SparkSession, place: DemoLake, table: str) -> None:
        """Make the commit."""


@dataclass(frozen=True)
class Sql:
    """A commit by Spark; the statement's names are those of DemoLake.fill."""

    what: str
    statement: str

    def commit(self, spark: SparkSession, place: DemoLake, table: str) -> None:
        """Run the statement."""
        spark.sql(place.fill(self.statement, table))


@dataclass(frozen=True)
class DeltaRsLoad:
    """The first load of a table by delta-rs: a source's writers need not all be Spark."""

    what: str

    def commit(self, spark: SparkSession, place: DemoLake, table: str) -> None:  # noqa: ARG002 (a Step; no JVM needed)
        """Write the delivered rows as a new table."""
        rows = pq.read_table(place.delivery(table))
        write_deltalake(place.table(table), rows, configuration=dict(_PROPERTIES))


@dataclass(frozen=True)
class History:
    """A table and its commits: step n makes version n."""

    table: str
    steps: tuple[Step, ...]
