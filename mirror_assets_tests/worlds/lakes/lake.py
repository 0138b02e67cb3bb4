"""Tables in a store of this machine, mirrored as users mirror them, and compared with their source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.composition import compose
from mirror_assets.config.load import load_config
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets.zones import LocalStore, Store
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.landed_slices import landed_slices

FEED = "delta.enableChangeDataFeed = true"


@dataclass(frozen=True)
class StoreAtHand:
    """A store that both readers reach: its line in `stores`, and the address of a new table in it."""

    name: str
    root: str
    settings: str

    @property
    def block(self) -> str:
        return f'stores:\n  lake: {{root: "{self.root}", {self.settings}}}\n'


@dataclass(frozen=True)
class StoreLab:
    """Tables of the schema `shop`, in a store or a catalog; the mirror is a folder of this machine.

    So is the landing zone, unless `zone` opens it.
    """

    spark: SparkSession
    root: Path
    zone: Store | None = field(default=None, kw_only=True)

    @property
    def file(self) -> Path:
        """Its mirror.yaml."""
        return self.root / "mirror.yaml"

    @property
    def replicator(self) -> LocalReplicator:
        return LocalReplicator(self.zone or LocalStore(self.root / "landing"), self.root / "mirror")

    def table(self, name: str = TABLE.table) -> TableContext:
        """The table's context; all tables of a test are read in one session, in turn."""
        config = load_config(self.file)
        project = replace(compose(config), session=lambda _: self.spark)
        return project.table(config.table(TableName("shop", name)))

    def mirror(self, name: str = TABLE.table) -> list[ProcessedSlice]:
        """Mirror until nothing is left."""
        return list(landed_slices(self.table(name), self.replicator))

    def is_equal(self, name: str = TABLE.table) -> bool:
        """Whether the mirror equals its source once the stand-in has applied everything."""
        self.replicator.poll()
        return reconcile_table(self.table(name), self.replicator).state is ReconcileState.EQUAL


@dataclass(frozen=True)
class LakeLab(StoreLab):
    """One table `orders` (id, name, amount; key id) in a store; `landing_zone` is the setting in mirror.yaml."""

    store: StoreAtHand
    path: str
    landing_zone: str = "{path: ./landing}"

    @property
    def uri(self) -> str:
        """The table's address, as Spark reads it."""
        return f"{self.store.root}/{self.path}"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write mirror.yaml; `settings` are the table's beside its source."""
        own = "".join(f"    {name}: {value}\n" for name, value in settings.items())
        source = f"    source: {{store: lake, path: {self.path}}}\n"
        self.root.mkdir(parents=True, exist_ok=True)
        self.file.write_text(
            f"landing_zone: {self.landing_zone}\nmirror: {{path: ./mirror}}\nautomation: {{mode: batch}}\n"
            f"{self.store.block}defaults: {{slices: {{max_commits: 2}}}}\ntables:\n  {TABLE}:\n{source}{own}"
        )

    def create(self, properties: str = FEED, more: str = "") -> None:
        """Version 0: the empty table; version 1: ten orders."""
        self.sql(
            f"CREATE TABLE {{t}} (id INT, name STRING, amount DOUBLE) USING delta {more} TBLPROPERTIES ({properties})",
            "INSERT INTO {t} SELECT CAST(id AS INT), concat('n', id), id / 2 FROM range(10)",
        )

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{self.uri}`"))
