"""A small mirrored table on this machine: its source, its settings, its landing zone and its mirror."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.source.log import DeltaLog
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.verify.reconciliation import ReconcileState, Reconciliation
from mirror_assets.zones import LocalStore
from mirror_assets_tests.landed_slices import landed_slices

TABLE = TableName("shop", "orders")


@dataclass(frozen=True)
class Lab:
    """Everything under one folder; `orders` has (id, name, amount) and key id.

    `changed` is a lab that began with the same files, and has changed since: its files spare Spark the statements.
    """

    spark: SparkSession
    root: Path
    changed: Path | None = None

    @property
    def uri(self) -> str:
        """The source."""
        return str(self.root / "lake" / "orders")

    @property
    def config_file(self) -> Path:
        """Its mirror.yaml."""
        return self.root / "mirror.yaml"

    @property
    def config(self) -> Config:
        """Its settings, read anew."""
        return load_config(self.config_file)

    @property
    def store(self) -> LocalStore:
        """The landing zone."""
        return LocalStore(self.root / "landing")

    @property
    def folder(self) -> Path:
        """The table folder."""
        return self.root / "landing" / TABLE.folder

    @property
    def replicator(self) -> LocalReplicator:
        """The stand-in."""
        return LocalReplicator(self.store, self.root / "mirror")

    @property
    def context(self) -> TableContext:
        """The table's context."""
        project = replace(compose(self.config), session=lambda _: self.spark)
        return project.table(self.config.table(TABLE))

    def manifest(self) -> Manifest:
        """Return the manifest of a table of which something has landed."""
        found = self.context.manifest()
        assert found is not None
        return found

    @property
    def files(self) -> list[str]:
        """Names of the landing files that wait in the table folder."""
        return sorted(path.name for path in self.folder.glob("0*.parquet"))

    def configure(self, table: str = "", defaults: str = "slices: {max_commits: 2}", keys: str = "[id]") -> None:
        """Write mirror.yaml."""
        self.config_file.write_text(
            "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nautomation: {mode: batch}\n"
            f"defaults:\n  {defaults}\n"
            f"tables:\n  {TABLE}:\n    source: ./lake/orders\n    keys: {keys}\n" + (f"    {table}\n" if table else "")
        )

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the source."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{self.uri}`"))

    def create(self) -> None:
        """Version 0: the empty table; version 1: ten orders."""
        self.sql(
            "CREATE TABLE {t} (id INT, name STRING, amount DOUBLE) USING delta "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
            "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
        )

    def change(self) -> None:
        """Four commits: key 1 twice, a delete with a new row, a key change."""
        if self.changed and DeltaLog(self.uri).state().version == 1:
            shutil.copytree(self.changed / "lake" / "orders", self.uri, dirs_exist_ok=True)
            return
        self.sql(
            "UPDATE {t} SET amount = 100 WHERE id IN (1, 2)",
            "UPDATE {t} SET amount = 200 WHERE id = 1",
            "MERGE INTO {t} t USING (SELECT 3 AS id UNION ALL SELECT 77) s ON t.id = s.id WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (id, name, amount) VALUES (s.id, 'new', 7)",
            "UPDATE {t} SET id = 500 WHERE id = 5",
        )

    def lose_changes(self) -> None:
        """Delete the change files and the older data files of the changes that wait: only a run can see that."""
        shutil.rmtree(self.root / "lake" / "orders" / "_change_data")
        live = {uri.rpartition("/")[2] for uri in DeltaTable(self.uri).file_uris()}
        for file in Path(self.uri).glob("*.parquet"):
            if file.name not in live:
                file.unlink()

    def mirror(self, report: Callable[[str], None] = lambda _: None) -> list[ProcessedSlice]:
        """Mirror until nothing is left."""
        return list(landed_slices(self.context, self.replicator, report))

    def compare(self) -> Reconciliation:
        """Compare mirror and source after the stand-in has applied what has landed."""
        self.replicator.poll()
        return reconcile_table(self.context, self.replicator)

    @property
    def is_equal(self) -> bool:
        """Whether the mirror equals its source when everything that has landed is applied."""
        return self.compare().state is ReconcileState.EQUAL


def key(first: int, last: int, epoch: int = 1) -> SliceKey:
    """A slice's key."""
    return SliceKey(epoch, first, last)
