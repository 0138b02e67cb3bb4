"""Opens the history of a table: what its settings name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from mirror_assets.config.model import Config
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.features.history.history_log import HistoryContext, HistoryLog
from mirror_assets.features.history.history_settings import HistoryMode, HistorySettings, HistoryStart, HistoryTable
from mirror_assets.landing.names import TableName
from mirror_assets.pipeline.plan_changes import limits_of
from mirror_assets.pipeline.spark_sessions import session_factory
from mirror_assets.source.log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_history(
    config: Config, table: TableSettings, source: DeltaLog, session: Callable[[str | None], SparkSession]
) -> HistoryContext:
    """Return what keeping the table's history needs: its source and a session of its own, and no landing zone."""
    name, own = table.name, HistoryTable.of(table)
    spark = session_factory(source, cache(partial(session, f"history of {name}")))
    start = None if isinstance(own.history_start, HistoryStart) else own.history_start
    return HistoryContext(
        table=str(name),
        source=source,
        history=history_log(config, name),
        limits=limits_of(table),
        spark=spark,
        stream=own.history is HistoryMode.STREAM,
        start=start,
        snapshot=own.history_start is HistoryStart.SNAPSHOT,
    )


def history_log(config: Config, name: TableName) -> HistoryLog:
    """Return the log of the table's history; nothing is read yet."""
    uri = history_uri(config, name)
    return HistoryLog(str(name), uri, config.access(uri))


def history_uri(config: Config, name: TableName) -> str:
    """Return the address of the table's history; its path below `history.path` is that below the landing zone."""
    return f"{HistorySettings.of(config).history.path}/{name.folder}"
