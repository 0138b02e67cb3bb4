"""A lake of two small tables, written by delta-rs, with the mirror.yaml that mirrors them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.standin.mirror_layout import MirrorLayout
from mirror_assets_tests.worlds.planted.lake import Lake

ORDERS, ITEMS, PRICES = (TableName("shop", name) for name in ("orders", "items", "prices"))
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

    @property
    def lake(self) -> Lake:
        """Its sources."""
        return Lake(self.folder / "lake")

    def make(self) -> None:
        """Write mirror.yaml, and both tables at version 0, of ten rows."""
        self.folder.mkdir(parents=True)
        self.config.write_text(_CONFIG, encoding="utf-8")
        for table in (ORDERS, ITEMS):
            self.lake.make(table.table)

    def add_prices(self) -> None:
        """Write another table, and put it into mirror.yaml."""
        self.lake.make(PRICES.table)
        with self.config.open("a", encoding="utf-8") as file:
            file.write(f"  {PRICES}: {{source: ./lake/prices, keys: [id]}}\n")

    def commit(self) -> SliceKey:
        """Update two rows of the orders; return the slice that the commit is."""
        self.lake.update(ORDERS.table)
        return self._newest()

    def plant(self) -> SliceKey:
        """Append a row whose key is NULL to the orders; return the slice that the commit is."""
        self.lake.append_null_key(ORDERS.table)
        return self._newest()

    def repair(self) -> None:
        """Delete the row whose key is NULL."""
        self.lake.open(ORDERS.table).delete("id IS NULL")

    def damage(self) -> None:
        """Delete a row of the mirror's orders."""
        DeltaTable(str(MirrorLayout(self.folder / "mirror").table(ORDERS))).delete("id = 3")

    def _newest(self) -> SliceKey:
        version = self.lake.open(ORDERS.table).version()
        return SliceKey(1, version, version)
