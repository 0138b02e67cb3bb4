"""A source table as a history needs it: small, keyed, changed by delta-rs or Spark, replaced by another at its path."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

_FEED = {"delta.enableChangeDataFeed": "true"}


class Change(Enum):
    """A kind of commit."""

    MERGE = "merge"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    CHANGE_KEY = "key change"
    MERGE_BY_SPARK = "merge by Spark"


@dataclass(frozen=True)
class Source:
    """A table of orders (id, name, amount, and columns that are added) with key id."""

    uri: Path
    spark: SparkSession

    def create(self, ids: Collection[int]) -> None:
        """Make the table, in the place of one that is there: another table then, with versions from 0."""
        shutil.rmtree(self.uri, ignore_errors=True)
        write_deltalake(str(self.uri), _orders(ids, "first"), configuration=_FEED)

    @property
    def table(self) -> DeltaTable:
        """The table at its tip."""
        return DeltaTable(str(self.uri))

    @property
    def ids(self) -> list[int]:
        """The keys that are in the table."""
        return sorted(self.table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self.table.schema().fields]

    def rows(self, version: int) -> Counter[tuple[tuple[str, str], ...]]:
        """The rows as of a version, as a multiset."""
        return bag(DeltaTable(str(self.uri), version=version))

    def commit(self, change: Change, ids: Collection[int], nth: int = 0) -> None:
        """Change what is there of these orders, or what is not; `nth` chooses the column or the key."""
        if change is Change.INSERT:
            self._insert(set(ids) - set(self.ids))
        elif change is Change.UPDATE:
            self._update(ids, self.columns[1:][nth % (len(self.columns) - 1)])
        elif change is Change.DELETE:
            self.table.delete(_among(ids))
        elif change is Change.CHANGE_KEY:
            self._change_key(min(ids), nth)
        elif change is Change.MERGE:
            self._merge(ids)
        else:
            self._merge_by_spark(ids)

    def _insert(self, ids: Collection[int]) -> None:
        if ids:
            write_deltalake(str(self.uri), _orders(ids, "inserted"), mode="append", schema_mode="merge")

    def _update(self, ids: Collection[int], column: str) -> None:
        """The new value depends on the one before, so that a change applied twice is seen."""
        value = "amount + 1" if column == "amount" else f"concat(coalesce({column}, ''), 'x')"
        self.table.update(updates={column: value}, predicate=_among(ids))

    def _change_key(self, old: int, new: int) -> None:
        if new not in self.ids:
            self.table.update(updates={"id": str(new)}, predicate=f"id = {old}")

    def _merge(self, ids: Collection[int]) -> None:
        """Update the orders that are there, insert the others."""
        merger = self.table.merge(_orders(ids, "merged"), "s.id = t.id", source_alias="s", target_alias="t")
        merger.when_matched_update({"name": "s.name", "amount": "t.amount + 1"})
        values = {"id": "s.id", "name": "s.name", "amount": "s.amount"}
        merger.when_not_matched_insert(values).execute()

    def _merge_by_spark(self, ids: Collection[int]) -> None:
        """Delete the orders that are there, insert the others, in one commit of Spark's."""
        values = ", ".join(f"({id_})" for id_ in sorted(ids))
        self.spark.sql(
            f"MERGE INTO delta.`{self.uri}` t USING (SELECT * FROM VALUES {values} AS v(id)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'by Spark', 7)"
        )

    def add_column(self, name: str) -> None:
        """Add a column."""
        self.table.alter.add_columns([Field(name, PrimitiveType("string"))])

    def optimize(self) -> None:
        """Rewrite the files, and no row."""
        self.table.optimize.compact()


def bag(table: DeltaTable) -> Counter[tuple[tuple[str, str], ...]]:
    """The rows as a multiset; a column without a value is as good as none."""
    rows = table.to_pyarrow_table().to_pylist()
    return Counter(tuple(sorted((name, repr(value)) for name, value in _valued(row))) for row in rows)


def _valued(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    return ((name, value) for name, value in row.items() if value is not None)


def _orders(ids: Collection[int], name: str) -> pa.Table:
    ordered = sorted(ids)
    names, amounts = [f"{name} {id_}" for id_ in ordered], [id_ / 2 for id_ in ordered]
    return pa.table({"id": pa.array(ordered, pa.int32()), "name": names, "amount": pa.array(amounts, pa.float64())})


def _among(ids: Collection[int]) -> str:
    return f"id IN ({', '.join(map(str, sorted(ids)))})"
