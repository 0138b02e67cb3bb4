"""Appends a slice to the history's table, once, whoever else is at it (docs/decisions/0006)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from mirror_assets.delta.columns import quoted
from mirror_assets.delta.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from mirror_assets.history.errors import HistoryColumnsUnfit, HistoryMoved
from mirror_assets.history.fit import appending, teach
from mirror_assets.history.log import HistoryLog
from mirror_assets.history.record import APPLICATION, Kept

TABLE_ID = "_table_id"
# First, so that statistics are kept of them in the widest table: they say which files a question concerns.
OWN_COLUMNS = (TABLE_ID, COMMIT_VERSION, COMMIT_TIMESTAMP, CHANGE_TYPE)

_NEEDS_MAPPING = re.compile(r"[ ,;{}()\n\t=]")


def next_slice(newest: Kept | None, table_id: str, first: int, last: int) -> Kept:
    """The slice that comes after the newest, to be written by a new attempt."""
    return Kept(newest.generation + 1 if newest else 1, table_id, first, last, uuid.uuid4().hex)


def append_rows(rows: DataFrame, history: HistoryLog, kept: Kept) -> Kept:
    """The slice as it was committed; `rows` are the feed's.

    Raises HistoryMoved when another run has committed its generation: nothing was written then. Raises
    HistoryColumnsUnfit, and what Spark's failures mean.
    """
    frame = _with_own_columns(rows, history, kept)
    _append(frame, history, kept)
    found = history.kept(kept.generation)
    if found is None or found.attempt != kept.attempt:
        raise HistoryMoved(history.table, kept.generation)
    return found


def append_nothing(spark: SparkSession, history: HistoryLog, kept: Kept) -> Kept:
    """The slice as it was committed, without rows. Raises what `append_rows` raises."""
    schema = f"{COMMIT_VERSION} BIGINT, {COMMIT_TIMESTAMP} TIMESTAMP, {CHANGE_TYPE} STRING"
    return append_rows(spark.createDataFrame([], schema), history, kept)


def _append(frame: DataFrame, history: HistoryLog, kept: Kept) -> None:
    """Append, and teach the table first what it lacks for new columns."""
    taught: set[str] = set()
    while True:
        try:
            return _append_once(frame, history, kept)
        except HistoryColumnsUnfit as error:
            if error.why in taught or not teach(frame.sparkSession, history, kept, error):
                raise
            taught.add(error.why)


def _append_once(frame: DataFrame, history: HistoryLog, kept: Kept) -> None:
    """Append, unless the generation is there: Delta takes a version of an application once, whoever writes it."""
    options = {"mergeSchema": "true", **_properties(frame.schema), "userMetadata": kept.text}
    writer = frame.write.format("delta").mode("append").options(**options)
    with appending(history, kept):
        writer.option("txnAppId", APPLICATION).option("txnVersion", kept.generation).save(history.uri)


def _with_own_columns(rows: DataFrame, history: HistoryLog, kept: Kept) -> DataFrame:
    columns = [name for name in rows.columns if name not in OWN_COLUMNS]
    taken = [name for name in rows.columns if name.casefold() == TABLE_ID]
    if taken:
        why = f"the source has a column `{taken[0]}`, which is the history's own"
        raise HistoryColumnsUnfit(history.table, history.uri, kept.first, kept.last, why)
    table_id = F.lit(kept.table_id).alias(TABLE_ID)
    return rows.select(table_id, *(F.col(quoted(name)) for name in (*OWN_COLUMNS[1:], *columns)))


def _properties(schema: StructType) -> Mapping[str, str]:
    """The properties with which the table is made; Delta does not look at them later."""
    needs_mapping = any(_NEEDS_MAPPING.search(name) for name in _names(schema))
    return {"delta.appendOnly": "true"} | ({"delta.columnMapping.mode": "name"} if needs_mapping else {})


def _names(kind: DataType) -> Iterator[str]:
    """The names of all columns and of what is in them."""
    for field in kind.fields if isinstance(kind, StructType) else ():
        yield field.name
        yield from _names(field.dataType)
    for inner in ("elementType", "keyType", "valueType"):
        if hasattr(kind, inner):
            yield from _names(getattr(kind, inner))
