"""A table under measurement: its settings, its zone, and the runs that land what is pending."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.land_slice import ProcessedSlice, process_slice
from mirror_assets.pipeline.plan import plan_snapshot, plan_table
from mirror_assets.pipeline.project import stand_in
from mirror_assets.pipeline.run import mirror_table
from mirror_assets.pipeline.stage import stage_attempt
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import EVERYTHING, Range, VersionPoint

_TABLE = TableName("bench", "orders")
_CONFIG = """\
landing_zone: {{path: ./landing}}
mirror: {{path: ./mirror}}
defaults:
  slices: {{max_commits: 100_000, max_rows: 100_000_000}}
tables:
  bench.orders: {{source: {uri}, {settings}}}
"""


@dataclass(frozen=True)
class BenchTable:
    """The table at `uri` with some settings, mirrored into a folder of its own."""

    spark: SparkSession
    root: Path
    uri: str
    settings: str

    def context(self) -> TableContext:
        """The table's work."""
        config = self._config()
        store = config.zone.open()
        return TableContext(config, config.table(_TABLE), DeltaLog(self.uri), store, lambda: self.spark)

    def land(self, last: int | None = None, context: TableContext | None = None) -> int:
        """Land what is pending, all or up to a version, with every check that blocks; the rows that landed.

        With the table's `context`, as a run that continues.
        """
        requested = EVERYTHING if last is None else Range(last=VersionPoint(last))
        context = context or self.context()
        events = mirror_table(context, stand_in(context.config, context.store), lambda _: None, requested)
        return sum(event.record.markers.total for event in events if isinstance(event, ProcessedSlice))

    def begin(self, version: int) -> None:
        """Land a first load of that version."""
        context = self.context()
        plan = plan_snapshot(context, context.log.state(version), epoch=1)
        process_slice(context, plan, plan.slices[0])

    def stage(self) -> SliceRecord:
        """Encode and stage the one slice that is pending; nothing looks at it."""
        return _staged(self.context())

    def publish_unchecked(self) -> None:
        """The same, and publish it."""
        context = self.context()
        drive(publish(context.name, _staged(context), checks=()), context.store)

    def copied(self, root: Path) -> BenchTable:
        """The same table as far as it has landed, in another folder."""
        shutil.copytree(self.root, root)
        return BenchTable(self.spark, root, self.uri, self.settings)

    def in_copies(self, act: Callable[[BenchTable], object]) -> Callable[[int], None]:
        """Return what acts, at each turn, on a copy beside this table that is deleted afterwards."""

        def run(turn: int) -> None:
            zone = self.copied(self.root.parent / f"zone-{turn}")
            act(zone)
            shutil.rmtree(zone.root)

        return run

    def _config(self) -> Config:
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / "mirror.yaml"
        path.write_text(_CONFIG.format(uri=self.uri, settings=self.settings), encoding="utf-8")
        return load_config(path)


def _staged(context: TableContext) -> SliceRecord:
    plan = plan_table(context)
    (planned,) = plan.slices
    return stage_attempt(context, planned, plan.position)
