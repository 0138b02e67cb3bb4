"""Random histories of catalog-managed tables: the writer's commits are ratified before each run of the mirror."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from mirror_assets.monitoring import MonitoredTable
from mirror_assets.pipeline.context import TableContext
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.worlds.histories.history import Choices, Failure, History, Way
from mirror_assets_tests.worlds.histories.steps import STEPS
from mirror_assets_tests.worlds.unity.managed import ManagedTable
from mirror_assets_tests.worlds.unity.server import LoopbackUnity

# Tables that another client than the catalog's makes in the folder, and files that are lost: no such table has them.
_NOT_BY_CATALOG = ("delta-rs", "another table", "clone", "lost", "converted")
_STEPS = tuple(step for step in STEPS if not any(word in step.name for word in _NOT_BY_CATALOG))


@dataclass(frozen=True)
class ManagedLab(Lab):
    """A lab whose table is named by its catalog; `uri` is the writer's table."""

    unity: LoopbackUnity | None = None

    def configure(self, table: str = "", defaults: str = "slices: {max_commits: 2}", keys: str = "[id]") -> None:
        assert self.unity is not None
        self.config_file.write_text(
            "landing_zone: {path: ./landing}\nmirror: {path: ./mirror}\nautomation: {mode: batch}\n"
            f"catalogs: {{main: {{type: unity, url: '{self.unity.url}', token_variable: UC_TOKEN}}}}\n"
            f"defaults:\n  {defaults}\n"
            f"tables:\n  {TABLE}:\n    source: {{catalog: main, table: sales.orders}}\n    keys: {keys}\n"
            + (f"    {table}\n" if table else "")
        )

    @property
    def status(self) -> MonitoredTable:
        """The table in the mirror, after all landing files were applied."""
        self.replicator.poll()
        status = self.replicator.table(TABLE)
        assert status is not None
        return status

    def managed(self, since: int = 0) -> ManagedTable:
        assert self.unity is not None
        place = self.root / "managed" / "orders"
        return ManagedTable(self.unity, "main.sales.orders", Path(self.uri), place, since)


class ManagedHistory(History):
    """A history whose mirror reads the managed table; rows are compared with the writer's."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, way: Way, unity: LoopbackUnity) -> None:
        super().__init__(spark, root, seed, way, Choices(_STEPS))
        self._lab = ManagedLab(spark, root, unity=unity)
        self._catalog = Random(f"catalog {seed}")
        self._managed = self._lab.managed(self._catalog.choice((0, 0, 3)))

    def _ratify(self) -> None:
        self._managed.ratify()
        self._managed.copy_checkpoints()
        ratified, choose = self._managed.table.ratified, self._catalog.random
        if ratified and choose() < 0.6:
            published = self._catalog.choice(ratified).version
            self._managed.publish(published, forget=choose() < 0.7, clean=choose() < 0.5)

    def _mirror(self, context: TableContext) -> None:
        self._ratify()
        super()._mirror(context)

    def _rebuild(self, context: TableContext) -> None:
        self._ratify()
        super()._rebuild(context)

    def _stage(self, context: TableContext) -> None:
        self._ratify()
        super()._stage(context)

    def _follow(self) -> None:
        super()._follow()
        if self._catalog.random() < 0.3:
            found = self._lab.compare()
            self.outcome.figures["reconciled"] += 1
            if found.state is not ReconcileState.EQUAL:
                raise Failure(f"reconcile: {found}")
