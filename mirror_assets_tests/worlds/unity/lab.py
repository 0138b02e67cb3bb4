"""Two tables of one bucket, mirrored by their names in a Unity Catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landed_slices import landed_slices
from mirror_assets_tests.worlds.unity.bucket import REGION, LoopbackBucket
from mirror_assets_tests.worlds.unity.server import LoopbackUnity, Table

_FEED: Mapping[str, str | None] = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class UnityLab:
    """Everything on this machine is below `root`; the tables `orders` and `lines` have (id, name) and key id."""

    spark: SparkSession
    root: Path
    unity: LoopbackUnity
    bucket: LoopbackBucket

    def configure(self) -> None:
        """Write mirror.yaml."""
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

    @property
    def file(self) -> Path:
        """Its mirror.yaml."""
        return self.root / "mirror.yaml"

    @property
    def config(self) -> Config:
        """Its settings, read anew."""
        return load_config(self.file)

    @property
    def replicator(self) -> LocalReplicator:
        """The stand-in."""
        return LocalReplicator(LocalStore(self.root / "landing"), self.root / "mirror")

    def create(self, name: str, folder: str, rows: int = 10, files: int = 1) -> Table:
        """Write a table with rows of these ids into a folder of the bucket, and register it."""
        uri, per_file = self.bucket.uri(folder), rows // files
        for number in range(files):
            ids = range(number * per_file, (number + 1) * per_file)
            made = pa.table({"id": list(ids), "name": [f"{name}-{one}" for one in ids]})
            write_deltalake(uri, made, mode="append", storage_options=self.bucket.writer, configuration=_FEED)
        return self.register(name, folder)

    def register(self, name: str, folder: str) -> Table:
        """Register what lies in the folder."""
        table = self.unity.add(f"main.sales.{name}", self.bucket.uri(folder))
        self.unity.vend = self.bucket.vend
        return table

    def opened(self, folder: str) -> DeltaTable:
        """Open the table in a folder as its owner does."""
        return DeltaTable(self.bucket.uri(folder), storage_options=self.bucket.writer)

    def change(self, folder: str) -> None:
        """Three commits: an update, a delete, new rows."""
        self.opened(folder).update(predicate="id = 1", updates={"name": "'changed'"})
        self.opened(folder).delete("id = 2")
        more = pa.table({"id": [100, 101], "name": ["new", "newer"]})
        write_deltalake(self.bucket.uri(folder), more, mode="append", storage_options=self.bucket.writer)

    def context(self, name: str) -> TableContext:
        """The table's context; all tables of a test are read in one session, in turn."""
        project = replace(compose(self.config), session=lambda _: self.spark)
        return project.table(self.config.table(TableName("shop", name)))

    def mirror(self, name: str) -> list[ProcessedSlice]:
        """Mirror the table until nothing is left."""
        return list(landed_slices(self.context(name), self.replicator))

    def is_equal(self, name: str) -> bool:
        """Whether the mirror equals its source once the stand-in has applied everything."""
        self.replicator.poll()
        return reconcile_table(self.context(name), self.replicator).state is ReconcileState.EQUAL
