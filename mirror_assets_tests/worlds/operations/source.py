"""A source that operations work on: rows (id, part, name, amount) with key id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

COLUMNS = "id, part, name, amount"


@dataclass(frozen=True)
class Source:
    """The table at `uri`, written by Spark or by delta-rs; rows of the versions in `unfit` can't be mirrored."""

    spark: SparkSession
    uri: str
    unfit: set[int] = field(default_factory=set, compare=False)

    @property
    def table(self) -> DeltaTable:
        """The table at its tip, for delta-rs."""
        return DeltaTable(self.uri)

    @property
    def version(self) -> int:
        """The tip."""
        return self.table.version()

    @property
    def configuration(self) -> Mapping[str, str]:
        """Its properties."""
        return dict(self.table.metadata().configuration)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(field.name for field in self.table.schema().fields)

    def members(self, column: str) -> tuple[str, ...]:
        """Names of a struct's members; none where there is no such column."""
        found = [
            field["type"] for field in json.loads(self.table.schema().to_json())["fields"] if field["name"] == column
        ]
        return tuple(member["name"] for kind in found for member in kind["fields"])

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{self.uri}`"))

    def rows(self, query: str) -> list[Row]:
        """The rows of a query; {t} is the table."""
        return list(self.query(query).collect())

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

    def fitted(self, query: str) -> DataFrame:
        """The rows of a query, in the types of the table's columns where it has them.

        Beside an identity column Delta wants all other columns of a DataFrame: what the query lacks is NULL there.
        """
        rows, target = self.query(query), self.query("SELECT * FROM {t} LIMIT 0").schema
        types = {field.name: field.dataType for field in target}
        fields = json.loads(self.table.schema().to_json())["fields"]
        numbered = {field["name"] for field in fields if "delta.identity.start" in field["metadata"]}
        missing = [name for name in types if numbered and name not in (*numbered, *rows.columns)]
        return rows.select(
            *(F.col(name).cast(types[name]) if name in types else name for name in rows.columns),
            *(F.lit(None).cast(types[name]).alias(name) for name in missing),
        )

    def properties(self, **values: str) -> None:
        """Set table properties, each without its `delta.`."""
        listed = ", ".join(f"'delta.{name}' = '{value}'" for name, value in values.items())
        self.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({listed})")

    def save(self, rows: DataFrame, options: Mapping[str, str], mode: str = "overwrite") -> None:
        """Write rows of Spark's at the path."""
        rows.write.format("delta").mode(mode).options(**options).save(self.uri)


def texts(source: Source) -> list[str]:
    """Names of the text columns that were added to it."""
    fields = json.loads(source.table.schema().to_json())["fields"]
    return [field["name"] for field in fields if field["type"] == "string" and field["name"] != "name"]


def values(ids: Iterable[int], name: str = "n", part: str = "id % 2") -> str:
    """A query for rows with these ids."""
    listed = ", ".join(f"({id_})" for id_ in ids)
    return (
        f"SELECT id, CAST({part} AS INT) AS part, concat('{name}', id) AS name, "
        f"CAST(id / 4 AS DECIMAL(10, 2)) AS amount FROM VALUES {listed} AS v(id)"
    )


def arrow(ids: Iterable[int], name: str = "n") -> pa.Table:
    """The same rows for delta-rs."""
    ordered = list(ids)
    return pa.table(
        {
            "id": pa.array(ordered, pa.int32()),
            "part": pa.array([id_ % 2 for id_ in ordered], pa.int32()),
            "name": pa.array([f"{name}{id_}" for id_ in ordered], pa.string()),
            "amount": pa.array([Decimal(id_ * 25).scaleb(-2) for id_ in ordered], pa.decimal128(10, 2)),
        }
    )
