"""Small sources with a change feed, made without Spark, and what keeping their history needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.features.history.history_log import HistoryCommit, HistoryContext, HistoryLog
from mirror_assets.features.history.with_spark.keep import keep_history
from mirror_assets.source.batching import Limits
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import Point

TABLE = "shop.orders"


def no_spark() -> NoReturn:
    """What is handed over where no session may start."""
    raise AssertionError("Spark was asked for")


@dataclass(frozen=True)
class Place:
    """A folder with a source `orders` (id, name) and its histories."""

    root: Path

    @property
    def source(self) -> str:
        """The source."""
        return str(self.root / "orders")

    def create(self, *, feed: bool = True) -> None:
        """Version 0: the table with three rows."""
        configuration = {"delta.enableChangeDataFeed": str(feed).lower()}
        write_deltalake(self.source, _rows(0, 3), configuration=configuration)

    def append(self, first: int, rows: int = 1, **columns: pa.Array) -> None:
        """One more commit, with these rows, and more columns."""
        added = _rows(first, rows)
        for name, values in columns.items():
            added = added.append_column(name, values)
        write_deltalake(self.source, added, mode="append", schema_mode="merge")

    def update(self, identity: int) -> None:
        """One more commit: a row gets another name."""
        DeltaTable(self.source).update(updates={"name": "'changed'"}, predicate=f"id = {identity}")

    def delete(self, identity: int) -> None:
        """One more commit: a row less."""
        DeltaTable(self.source).delete(f"id = {identity}")

    def set(self, **properties: str) -> None:
        """One more commit: other properties; dots of their names are written `__`."""
        named = {name.replace("__", "."): value for name, value in properties.items()}
        DeltaTable(self.source).alter.set_table_properties(named)

    def context(
        self,
        spark: Callable[[], SparkSession] = no_spark,
        *,
        name: str = "history",
        max_commits: int = 1000,
        stream: bool = False,
        start: Point | None = None,
        snapshot: bool = True,
    ) -> HistoryContext:
        """What keeping the source's history needs; `name` tells several of them apart."""
        return HistoryContext(
            table=TABLE,
            source=DeltaLog(self.source),
            history=HistoryLog(TABLE, str(self.root / name)),
            limits=Limits(max_commits, 2**62, 2**62),
            spark=spark,
            stream=stream,
            start=start,
            snapshot=snapshot,
        )


def keep(context: HistoryContext, skip_to: int | None = None) -> list[HistoryCommit]:
    """Keep what there is."""
    return list(keep_history(context, lambda _: None, skip_to))


def kept_rows(spark: SparkSession, context: HistoryContext) -> DataFrame:
    """The history."""
    return spark.read.format("delta").load(context.history.uri)


def ranges(kept: list[HistoryCommit]) -> list[tuple[int, int]]:
    """First and last versions."""
    return [(slice_.first, slice_.last) for slice_ in kept]


def _rows(first: int, rows: int) -> pa.Table:
    identities = range(first, first + rows)
    return pa.table({"id": pa.array(identities, pa.int32()), "name": [f"n{identity}" for identity in identities]})
