"""Opens what the commands work on. Nothing else in the command line composes objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from mirror_assets.config import Config
from mirror_assets.delta.log import SourceLog
from mirror_assets.mirroring.mirrors import open_fabric, open_mirror
from mirror_assets.mirroring.work import TableWork
from mirror_assets.mirroring.zone import open_exchange, open_spark, open_watched_zone, open_zone

__all__ = ["open_fabric", "open_mirror", "open_spark", "open_tables", "open_watched_zone", "open_zone"]


def open_tables(config: Config, names: Sequence[str]) -> list[TableWork]:
    """Open these tables, or all; each starts its own Spark session when it needs one. Raises TableUnknown."""
    store, staging = open_zone(config.landing_zone), open_exchange(config.landing_zone)
    tables = [config.table(name) for name in names] if names else config.all_tables()
    return [
        TableWork(
            config, table, SourceLog(table.source), store, cache(partial(open_spark, config, str(table.name))), staging
        )
        for table in tables
    ]
