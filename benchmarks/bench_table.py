"""A table under measurement: its settings, its zone, and the runs that land what is pending."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.config import Config, load_config
from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import publish
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.planning import plan_snapshot, plan_table
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.mirroring.run import mirror_slice, mirror_table
from mirror_assets.mirroring.stage import stage_slice
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_zone
from mirror_assets.source.log import SourceLog
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
_NO_WAIT = MirrorWait(lambda: True, lambda: True, pause_seconds=0, limit_seconds=1)


@dataclass(frozen=True)
class BenchTable:
    """The table at `uri` with some settings, mirrored into a folder of its own."""

    spark: SparkSession
    root: Path
    uri: str
    settings: str

    def work(self) -> TableWork:
        """The table's work."""
        config = self._config()
        store = open_zone(config.landing_zone)
        return TableWork(config, config.table(_TABLE), SourceLog(self.uri), store, lambda: self.spark)

    def land(self, last: int | None = None) -> int:
        """Land what is pending, all or up to a version, with every check that blocks; the rows that landed."""
        asked = EVERYTHING if last is None else Range(last=VersionPoint(last))
        slices = mirror_table(self.work(), _NO_WAIT, lambda _: None, asked)
        return sum(mirrored.record.markers.total for mirrored in slices)

    def begin(self, version: int) -> None:
        """Land a first load of that version."""
        work = self.work()
        mirror_slice(work, work.log.state(version), plan_snapshot(work, life=1, version=version)[0][0])

    def stage(self) -> SliceRecord:
        """Encode and stage the one slice that is pending; nothing looks at it."""
        return _staged(self.work())

    def publish_unchecked(self) -> None:
        """The same, and publish it."""
        work = self.work()
        drive(publish(work.name, _staged(work), checks=()), work.store)

    def copied(self, root: Path) -> BenchTable:
        """The same table as far as it has landed, in another folder."""
        shutil.copytree(self.root, root)
        return BenchTable(self.spark, root, self.uri, self.settings)

    def _config(self) -> Config:
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / "mirror.yaml"
        path.write_text(_CONFIG.format(uri=self.uri, settings=self.settings), encoding="utf-8")
        return load_config(path)


def _staged(work: TableWork) -> SliceRecord:
    plan = plan_table(work)
    (planned,) = plan.slices
    return stage_slice(work, planned, plan.footing)
