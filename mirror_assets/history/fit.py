"""Appending to the history's table: what Spark's failures mean, and what the table has to learn first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.delta.columns import quoted
from mirror_assets.delta.spark_errors import spark_error
from mirror_assets.history.errors import HistoryColumnsUnfit, HistoryMoved
from mirror_assets.history.log import HistoryLog
from mirror_assets.history.record import Kept

_RACE = re.compile(r"DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)")
_UNFIT = re.compile(
    r"DELTA_(FAILED_TO_MERGE_FIELDS|MERGE_INCOMPATIBLE_\w+|INVALID_CHARACTERS_IN_COLUMN_NAMES?|\w*DUPLICATE_COLUMNS\w*"
    r"|FEATURES_REQUIRE_MANUAL_ENABLEMENT)"
)


_MAX_TEXT = 400
_FEATURES = re.compile(r"following table feature\(s\): ([\w-]+(?:, *[\w-]+)*)")
_NAMES = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME"


def teach(spark: SparkSession, history: HistoryLog, kept: Kept, unfit: HistoryColumnsUnfit) -> bool:
    """Whether the table has been given what new columns need: the source has it too, so its readers know it.

    That is a table feature for a type, or column mapping for a name. A type that grew is left to a person: what widens
    types is a feature that fewer readers know.
    """
    features, is_name = _FEATURES.search(unfit.why), _NAMES in unfit.why
    mapping = f"ALTER TABLE delta.{quoted(history.uri)} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    with appending(history, kept):
        for name in features[1].split(",") if features else ():
            DeltaTable.forPath(spark, history.uri).addFeatureSupport(name.strip())
        if is_name:
            spark.sql(mapping)
    return bool(features) or is_name


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
            said = text[unfit.end() :].lstrip("] ").partition("\n")[0][:_MAX_TEXT].rstrip(".")
            why = f"{said} ({unfit[0]})"
            raise HistoryColumnsUnfit(history.table, history.uri, kept.first, kept.last, why) from error
        raise spark_error(error, history.uri) from error
