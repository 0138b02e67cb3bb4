"""A lake of many kinds of tables, whose keys are known: some by delta-rs, some by Spark, some broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

FEED = {"delta.enableChangeDataFeed": "true"}
APPEND_ONLY = {"delta.appendOnly": "true"}
_FEED, _TRACKING = "delta.enableChangeDataFeed = true", "delta.enableRowTracking = true"
_ROWS = 60


@dataclass(frozen=True)
class Expected:
    """What `init` writes of a table: its name in the mirror, how changes are found, keys, and whether it waits."""

    name: str
    changes: str
    keys: tuple[str, ...] = ()
    waits: bool = False


BY_DELTA_RS = {
    "sales/orders": Expected("sales.orders", "feed", ("order_id",)),
    "crm/customers": Expected("crm.customers", "feed", ("email",)),
    "crm/clicks": Expected("crm.clicks", "row_tracking", waits=True),
    "stock/items": Expected("stock.items", "files", ("item_id",)),
    "logs/app log": Expected("logs.app_log", "append_only"),
    "archive/sales/orders": Expected("sales.orders_2", "feed", ("order_id",)),
    "empty": Expected("lake.empty", "feed", ("id",)),
    "odd: #names/'yes'@v2": Expected("odd_names.yes_@v2", "feed", ("the id",)),
}
BY_SPARK = {
    "sales/lines": Expected("sales.lines", "feed", ("order_id", "line_no")),
    "stock/moves": Expected("stock.moves", "row_tracking"),
    "stock/counts": Expected("stock.counts", "row_tracking", ("count_id",)),
    "deleted": Expected("lake.deleted", "feed", ("id",)),
    "mapped": Expected("lake.mapped", "feed", ("order key",)),
    "nothing": Expected("lake.nothing", "feed", ("id",)),
}
UNREADABLE = ("broken", "hollow")


def make_by_delta_rs(root: Path) -> None:
    """Write the tables that need no Spark, and what is no table."""
    numbers = list(range(_ROWS))
    orders = {"customer_id": [n % 7 for n in numbers], "order_id": [n + 5 for n in numbers]}
    _write(root / "sales/orders", orders)
    _write(root / "archive/sales/orders", orders)
    _write(root / "crm/customers", {"id": [None, *numbers[1:]], "email": [f"{n}@x.org" for n in numbers]})
    _write(root / "crm/clicks", {"page_id": [n % 3 for n in numbers], "at": [n % 10 for n in numbers]})
    _write(root / "stock/items", {"item_id": numbers, "name": ["x"] * _ROWS}, {})
    _write(root / "logs/app log", {"message": ["same"] * _ROWS}, APPEND_ONLY)
    _write(root / "empty", {"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    _write(root / "odd: #names/'yes'@v2", {"the id": numbers, "null": ["x"] * _ROWS})
    (root / "broken/_delta_log").mkdir(parents=True)
    (root / "broken/_delta_log" / f"{0:020d}.json").write_text("{nonsense")
    (root / "hollow/_delta_log").mkdir(parents=True)
    (root / "plain").mkdir()
    (root / "plain/part-0.parquet").write_bytes(b"no table")


def make_by_spark(spark: SparkSession, root: Path) -> None:
    """Write the tables that delta-rs can't write."""

    def sql(path: str, *statements: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        for statement in statements:
            spark.sql(statement.format(t=f"delta.`{root / path}`"))

    def made(query: str, *properties: str) -> str:
        return f"CREATE TABLE {{t}} USING delta TBLPROPERTIES ({', '.join(properties)}) AS {query} FROM range({_ROWS})"

    sql("sales/lines", made("SELECT id DIV 3 AS order_id, CAST(id % 3 AS INT) AS line_no, id % 5 AS price", _FEED))
    sql("stock/moves", made("SELECT id % 4 AS item_id, id % 2 AS pieces", _TRACKING))
    sql("stock/counts", made("SELECT id AS count_id, id % 2 AS pieces", _TRACKING))
    # Two rows with one id, of which a deletion vector hides one.
    vectors = "delta.enableDeletionVectors = true"
    sql("deleted", made("SELECT id DIV 1 AS id, id AS other", _FEED, vectors), "INSERT INTO {t} VALUES (1, 99)")
    sql("deleted", "DELETE FROM {t} WHERE other = 99")
    mapping = "delta.columnMapping.mode = 'name'"
    sql(
        "mapped",
        f"CREATE TABLE {{t}} (k BIGINT, v BIGINT) USING delta TBLPROPERTIES ({_FEED}, {mapping})",
        f"INSERT INTO {{t}} SELECT id, id % 2 FROM range({_ROWS})",
        "ALTER TABLE {t} RENAME COLUMN k TO `order key`",
    )
    sql(
        "nothing", f"CREATE TABLE {{t}} (id INT, nothing VOID, more STRUCT<a: INT>) USING delta TBLPROPERTIES ({_FEED})"
    )
    sql("nothing", "INSERT INTO {t} (id, more) VALUES (1, named_struct('a', 1)), (2, NULL)")


def _write(path: Path, columns: Mapping[str, object], properties: Mapping[str, str] = FEED) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(path, pa.table(dict(columns)), configuration=dict(properties))
