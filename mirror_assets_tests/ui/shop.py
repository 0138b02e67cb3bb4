"""A lake of two small tables, written by delta-rs, with the mirror.yaml that mirrors them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from mirror_assets.landing.names import SliceKey, TableName

ORDERS, ITEMS, PRICES = (TableName("shop", name) for name in ("orders", "items", "prices"))
_FEED = {"delta.enableChangeDataFeed": "true"}
_CONFIG = """landing_zone: {path: ./landing}
mirror: {path: ./mirror}
automation: {mode: batch}
defaults:
  slices: {max_commits: 1}
  owners: [team:sales]
  tags: {domain: shop}
tables:
  shop.orders: {source: ./lake/orders, keys: [id]}
  shop.items: {source: ./lake/items, keys: [id]}
"""


@dataclass(frozen=True)
class Shop:
    """The folder of lake, landing zone, mirror and mirror.yaml."""

    folder: Path

    @property
    def config(self) -> Path:
        """Its mirror.yaml."""
        return self.folder / "mirror.yaml"

    def make(self) -> None:
        """Write mirror.yaml, and both tables at version 0, of ten rows."""
        self.folder.mkdir(parents=True)
        self.config.write_text(_CONFIG, encoding="utf-8")
        rows = pa.table({"id": range(10), "name": [f"n{row}" for row in range(10)], "amount": [1.5] * 10})
        for table in (ORDERS, ITEMS):
            write_deltalake(self._path(table), rows, configuration=_FEED)

    def add_prices(self) -> None:
        """Write another table, and put it into mirror.yaml."""
        write_deltalake(self._path(PRICES), pa.table({"id": range(3), "price": [1.0] * 3}), configuration=_FEED)
        with self.config.open("a", encoding="utf-8") as file:
            file.write(f"  {PRICES}: {{source: ./lake/prices, keys: [id]}}\n")

    def commit(self) -> SliceKey:
        """Update two rows of the orders; return the slice that the commit is."""
        orders = DeltaTable(self._path(ORDERS))
        orders.update({"amount": "amount + 1"}, predicate="id < 2")
        return self._newest()

    def plant(self) -> SliceKey:
        """Append a row whose key is NULL to the orders; return the slice that the commit is."""
        row = pa.table({"id": pa.array([None], pa.int64()), "name": ["nobody"], "amount": [0.0]})
        write_deltalake(self._path(ORDERS), row, mode="append", commit_properties=CommitProperties())
        return self._newest()

    def mend(self) -> None:
        """Delete the row whose key is NULL."""
        DeltaTable(self._path(ORDERS)).delete("id IS NULL")

    def _newest(self) -> SliceKey:
        version = DeltaTable(self._path(ORDERS)).version()
        return SliceKey(1, version, version)

    def _path(self, table: TableName) -> str:
        return str(self.folder / "lake" / table.table)
