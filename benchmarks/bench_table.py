"""One table under measurement: its settings, its zone, and the run that lands what is pending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from mirror_assets.config import load_config
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.points import VersionPoint
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.mirroring.run import mirror_table
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_zone

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

    @property
    def work(self) -> TableWork:
        """The table's work."""
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / "mirror.yaml"
        path.write_text(_CONFIG.format(uri=self.uri, settings=self.settings), encoding="utf-8")
        config = load_config(path)
        store = open_zone(config.landing_zone)
        return TableWork(config, config.table(_TABLE), SourceLog(self.uri), store, lambda: self.spark)

    def land(self, last: int | None = None) -> int:
        """Land what is pending, all or up to a version, with every check that blocks; the rows that landed."""
        asked = EVERYTHING if last is None else Range(last=VersionPoint(last))
        slices = mirror_table(self.work, _NO_WAIT, lambda _: None, asked)
        return sum(mirrored.record.markers.total for mirrored in slices)


_NO_WAIT = MirrorWait(lambda: True, lambda: True, pause_seconds=0, limit_seconds=1)
