"""The context of one table's history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.features.history.history_log import HistoryLog
from mirror_assets.source.batching import Limits
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.ranges import Point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # planning and status start without loading it


@dataclass(frozen=True)
class StreamOptions:
    """The folder for the stream's checkpoints, and Delta's options for a streaming read by their names."""

    checkpoints: Path
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryContext:
    """A table's source, its history, the limits of a slice, and a Spark session that starts on its first call.

    With `stream` the feed is read by a Spark stream, else by one batch read per slice. A new history starts at `start`
    (None: at the first commit that can be read); with `snapshot`, with the table's rows as of then, if it had any.
    """

    table: str
    source: DeltaLog
    history: HistoryLog
    limits: Limits
    spark: Callable[[], SparkSession]
    stream: StreamOptions | None = None
    start: Point | None = None
    snapshot: bool = True
