"""Two tables of one bucket, mirrored by their names in a Unity Catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from mirror_assets_tests.worlds.lakes.lake import StoreLab
from mirror_assets_tests.worlds.lakes.s3_server import REGION
from mirror_assets_tests.worlds.unity.bucket import LoopbackBucket
from mirror_assets_tests.worlds.unity.server import LoopbackUnity, Table

_FEED: Mapping[str, str | None] = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class UnityLab(StoreLab):
    """Everything on this machine is below `root`; the tables `orders` and `lines` have (id, name) and key id."""

    unity: LoopbackUnity
    bucket: LoopbackBucket

    def configure(self) -> None:
        tables = "".join(
            f"  shop.{name}: {{source: {{catalog: main, table: sales.{name}}}, keys: [id]}}\n"
            for name in ("orders", "lines")
        )
        self.file.write_text(
            "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nautomation: {mode: batch}\n"
            f"stores:\n  lake: {{root: '{self.bucket.uri('')}', region: {REGION}, endpoint: '{self.bucket.url}'}}\n"
            f"catalogs:\n  main: {{type: unity, url: '{self.unity.url}', token_variable: UC_TOKEN}}\n"
            f"tables:\n{tables}"
        )

    def create(self, name: str, folder: str, rows: int = 10, files: int = 1) -> Table:
        """Write a table with rows of these ids into a folder of the bucket, and register it."""
        uri, per_file = self.bucket.uri(folder), rows // files
        for number in range(files):
            ids = range(number * per_file, (number + 1) * per_file)
            made = pa.table({"id": list(ids), "name": [f"{name}-{one}" for one in ids]})
            write_deltalake(uri, made, mode="append", storage_options=self.bucket.writer, configuration=_FEED)
        return self.register(name, folder)

    def register(self, name: str, folder: str) -> Table:
        table = self.unity.add(f"main.sales.{name}", self.bucket.uri(folder))
        self.unity.vend = self.bucket.vend
        return table

    def opened(self, folder: str) -> DeltaTable:
        return DeltaTable(self.bucket.uri(folder), storage_options=self.bucket.writer)

    def change(self, folder: str) -> None:
        """Three commits: an update, a delete, new rows."""
        self.opened(folder).update(predicate="id = 1", updates={"name": "'changed'"})
        self.opened(folder).delete("id = 2")
        more = pa.table({"id": [100, 101], "name": ["new", "newer"]})
        write_deltalake(self.bucket.uri(folder), more, mode="append", storage_options=self.bucket.writer)
