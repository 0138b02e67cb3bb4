"""A driver of its own: lands a source's first versions, then what came after them, on the cluster that is named.

Started as `python -m mirror_assets_tests.cluster.driver MIRROR_YAML TABLE FIRST_LOAD_AT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mirror_assets.config import load_config
from mirror_assets.delta.log import SourceLog
from mirror_assets.delta.points import VersionPoint
from mirror_assets.delta.ranges import EVERYTHING, Range
from mirror_assets.delta.session import open_session, spark_settings
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.rebuild import MirrorWait
from mirror_assets.mirroring.run import mirror_table
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_zone


def main(path: str, table: str, first_load_at: str) -> None:
    """Land both."""
    config = load_config(Path(path))
    settings = config.table(TableName.parse(table))
    spark = open_session(spark_settings(config.spark.settings))
    work = TableWork(config, settings, SourceLog(settings.source), open_zone(config.landing_zone), lambda: spark)
    wait = MirrorWait(lambda: True, lambda: True, pause_seconds=0, limit_seconds=1)
    for asked in (Range(last=VersionPoint(int(first_load_at))), EVERYTHING):
        list(mirror_table(work, wait, lambda _: None, asked))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
