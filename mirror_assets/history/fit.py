"""Appending to the history's table: what Spark's failures mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.delta.spark_errors import spark_error
from mirror_assets.history.errors import HistoryColumnsUnfit, HistoryMoved
from mirror_assets.history.log import HistoryLog
from mirror_assets.history.record import Kept

_RACE = re.compile(r"DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)")
_UNFIT = re.compile(
    r"DELTA_(FAILED_TO_MERGE_FIELDS|MERGE_INCOMPATIBLE_\w+|INVALID_CHARACTERS_IN_COLUMN_NAMES?|\w*DUPLICATE_COLUMNS\w*"
    r"|FEATURES_REQUIRE_MANUAL_ENABLEMENT)"
)


@contextmanager
def appending(history: HistoryLog, kept: Kept) -> Iterator[None]:
    """Raise what Spark raises in the block as an error of ours.

    HistoryMoved for a commit that another run got ahead of, and HistoryColumnsUnfit for columns that the table can't
    hold.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        if _RACE.search(text):
            raise HistoryMoved(history.table, kept.generation) from error
        unfit = _UNFIT.search(text)
        if unfit:
            why = text[unfit.start() :].partition("\n")[0][:400]
            raise HistoryColumnsUnfit(history.table, history.uri, kept.first, kept.last, why) from error
        raise spark_error(error, history.uri) from error
