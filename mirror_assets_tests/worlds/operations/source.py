"""A source that operations work on: rows (id, part, name, amount) with key id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id, part, name, amount"


@dataclass(frozen=True)
class Source:
    """The table at `uri`, written by Spark or by delta-rs."""

    spark: SparkSession
    uri: str

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.uri)

    @property
    def version(self) -> int:
        return self.table.version()

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{self.uri}`"))

    def query(self, query: str) -> DataFrame:
        """A query; {t} is the table."""
        return self.spark.sql(query.format(t=f"delta.`{self.uri}`"))

    @contextmanager
    def named(self, name: str) -> Iterator[str]:
        """The table under a name of the session's catalog."""
        self.spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{self.uri}'")
        try:
            yield name
        finally:
            self.spark.sql(f"DROP TABLE {name}")

    def properties(self, **values: str) -> None:
        """Set table properties, each without its `delta.`."""
        listed = ", ".join(f"'delta.{name}' = '{value}'" for name, value in values.items())
        self.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({listed})")

    def save(self, rows: DataFrame, options: Mapping[str, str], mode: str = "overwrite") -> None:
        rows.write.format("delta").mode(mode).options(**options).save(self.uri)


def values(ids: Iterable[int], name: str = "n", part: str = "id % 2") -> str:
    listed = ", ".join(f"({id_})" for id_ in ids)
    return (
        f"SELECT id, CAST({part} AS INT) AS part, concat('{name}', id) AS name, "
        f"CAST(id / 4 AS DECIMAL(10, 2)) AS amount FROM VALUES {listed} AS v(id)"
    )


def arrow(ids: Iterable[int], name: str = "n") -> pa.Table:
    ordered = list(ids)
    return pa.table(
        {
            "id": pa.array(ordered, pa.int32()),
            "part": pa.array([id_ % 2 for id_ in ordered], pa.int32()),
            "name": pa.array([f"{name}{id_}" for id_ in ordered], pa.string()),
            "amount": pa.array([Decimal(id_ * 25).scaleb(-2) for id_ in ordered], pa.decimal128(10, 2)),
        }
    )
