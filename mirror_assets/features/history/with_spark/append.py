"""Appends a slice to the history's table exactly once, even while other runs do the same (docs/decisions/0006)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from mirror_assets.encode.columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets.encode.spark_errors import spark_error
from mirror_assets.errors import RetryError
from mirror_assets.features.history.errors import (
    HISTORY_COLUMNS_UNFIT,
    HISTORY_OVERTAKEN,
    HistoryColumnsUnfit,
)
from mirror_assets.features.history.history_log import APPLICATION, HistoryCommit, HistoryLog
from mirror_assets.spark_api import SPARK_ERRORS
from mirror_assets.spark_names import quoted, spark_path, table_at

TABLE_ID = "_table_id"
# First, because Delta collects statistics for the first columns only, and queries filter by these.
OWN_COLUMNS = (TABLE_ID, COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE)

_RACE = re.compile(r"DELTA_(CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)")
_UNFIT = re.compile(
    r"DELTA_(FAILED_TO_MERGE_FIELDS|MERGE_INCOMPATIBLE_\w+|INVALID_CHARACTERS_IN_COLUMN_NAMES?|\w*DUPLICATE_COLUMNS\w*"
    r"|FEATURES_REQUIRE_MANUAL_ENABLEMENT)"
)
_MAX_TEXT = 400
_FEATURES = re.compile(r"following table feature\(s\): ([\w-]+(?:, *[\w-]+)*)")
_NAMES = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAME"
_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")


def next_commit(newest: HistoryCommit | None, table_id: str, first: int, last: int) -> HistoryCommit:
    """Return the commit to make after the newest, under a new attempt id, for versions `first` to `last`."""
    return HistoryCommit(newest.generation + 1 if newest else 1, table_id, first, last, uuid.uuid4().hex)


def append_rows(rows: DataFrame, history: HistoryLog, kept: HistoryCommit) -> HistoryCommit:
    """Append rows of the feed, and return the commit as the log has it.

    Raises HISTORY_OVERTAKEN, with nothing written, when another run has committed this generation; HistoryColumnsUnfit
    for columns that the table can't hold; and what Spark's failures mean. Enables on the table what new columns need
    and the source has.
    """
    frame, tried = _with_own_columns(rows, history, kept), set[str]()
    options = {"mergeSchema": "true", **_properties(frame.schema), "userMetadata": kept.text}
    # Delta takes a transaction version of an application once.
    options |= {"txnAppId": APPLICATION, "txnVersion": str(kept.generation)}
    while True:
        try:
            with _translated(history, kept):
                frame.write.format("delta").mode("append").options(**options).save(spark_path(history.uri))
            break
        except HistoryColumnsUnfit as error:
            if error.why in tried or not _enable(frame.sparkSession, history, kept, error):
                raise
            tried.add(error.why)
    found = history.commit(kept.generation)
    if found is None or found.attempt != kept.attempt:
        raise _overtaken(history, kept)
    return found


def _overtaken(history: HistoryLog, kept: HistoryCommit) -> RetryError:
    return HISTORY_OVERTAKEN(
        table=history.table, why=f"another run has committed generation {kept.generation} of the history"
    )


def append_nothing(spark: SparkSession, history: HistoryLog, kept: HistoryCommit) -> HistoryCommit:
    """Commit a slice without rows. Raises what `append_rows` raises."""
    schema = f"{COMMIT_VERSION} BIGINT, {COMMIT_TIMESTAMP} TIMESTAMP, {CHANGE_TYPE} STRING"
    return append_rows(spark.createDataFrame([], schema), history, kept)


def _with_own_columns(rows: DataFrame, history: HistoryLog, kept: HistoryCommit) -> DataFrame:
    columns = [name for name in rows.columns if name not in OWN_COLUMNS]
    taken = [name for name in rows.columns if name.casefold() == TABLE_ID]
    if taken:
        why = f"the source has a column `{taken[0]}`, which is the history's own"
        raise HISTORY_COLUMNS_UNFIT(table=history.table, path=history.uri, first=kept.first, last=kept.last, why=why)
    table_id = F.lit(kept.table_id).alias(TABLE_ID)
    return rows.select(table_id, *(F.col(quoted(name)) for name in (*OWN_COLUMNS[1:], *columns)))


def _properties(schema: StructType) -> Mapping[str, str]:
    """Return the properties for creating the table; Delta ignores them on later appends."""
    needs_mapping = any(_NEEDS_MAPPING.search(name) for name in _names(schema))
    return {"delta.appendOnly": "true"} | ({"delta.columnMapping.mode": "name"} if needs_mapping else {})


def _names(kind: DataType) -> Iterator[str]:
    """Yield the names of all columns and of their nested fields."""
    for field in kind.fields if isinstance(kind, StructType) else ():
        yield field.name
        yield from _names(field.dataType)
    for inner in ("elementType", "keyType", "valueType"):
        if hasattr(kind, inner):
            yield from _names(getattr(kind, inner))


def _enable(spark: SparkSession, history: HistoryLog, kept: HistoryCommit, unfit: HistoryColumnsUnfit) -> bool:
    """Enable the table feature or column mapping that new columns need; return whether one was missing.

    The source has it also, so its readers support it. Type widening is left to a person: fewer readers support that.
    """
    features, is_name = _FEATURES.search(unfit.why), _NAMES in unfit.why
    names = features[1].split(",") if features else []
    properties = [f"'delta.feature.{name.strip()}' = 'supported'" for name in names]
    properties += ["'delta.columnMapping.mode' = 'name'"] if is_name else []
    if properties:
        table = table_at(spark_path(history.uri))
        with _translated(history, kept):
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({', '.join(properties)})")
    return bool(properties)


@contextmanager
def _translated(history: HistoryLog, kept: HistoryCommit) -> Iterator[None]:
    """Translate what Spark raises: HISTORY_OVERTAKEN for a lost race, HistoryColumnsUnfit for unfit columns."""
    try:
        yield
    except SPARK_ERRORS as error:
        text = str(error)
        if _RACE.search(text):
            raise _overtaken(history, kept) from error
        unfit = _UNFIT.search(text)
        if unfit:
            message = text[unfit.end() :].lstrip("] ").partition("\n")[0][:_MAX_TEXT].rstrip(".")
            why = f"{message} ({unfit[0]})"
            raise HISTORY_COLUMNS_UNFIT(
                table=history.table, path=history.uri, first=kept.first, last=kept.last, why=why
            ) from error
        raise spark_error(error, history.uri) from error
