"""What keeping one table's history needs at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_assets.history.checkpoint import Checkpoints
from mirror_assets.history.log import HistoryLog
from mirror_assets.source.batching import Limits
from mirror_assets.source.log import SourceLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HistoryContext:
    """A table's source, its history, what a slice may hold, and a session that starts when it is needed.

    With `checkpoints` the history is kept by a stream, else slice by slice.
    """

    table: str
    source: SourceLog
    history: HistoryLog
    limits: Limits
    spark: Callable[[], SparkSession]
    checkpoints: Checkpoints | None = None
