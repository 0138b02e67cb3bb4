"""What differs between the versions of Spark, and between a classic session and one of Spark Connect.

Each difference is asked for by capability, not by number: platforms change what a number means. Below all packages that
use Spark, like `spark_messages.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent import futures
from functools import lru_cache
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext, inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_Work = TypeVar("_Work", bound=Callable[..., object])
# PySpark wraps most exceptions of the JVM, but not all.
SPARK_ERRORS = (PySparkException, Py4JJavaError)
# The event with a query's counts follows it within milliseconds, unless the driver is overloaded.
_EVENT_SECONDS = 300.0
# Types of Delta, by the first Spark that has them.
_SINCE = {"variant": "4.0"}


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session is one of a JVM that this process has, not of a Spark Connect server."""
    return hasattr(spark, "_jsparkSession")


def condition_of(error: PySparkException) -> str | None:
    """Return Spark's condition of the error, such as `PATH_NOT_FOUND`."""
    # Spark 3.5 calls it the error class.
    found: str | None = (error.getCondition if hasattr(error, "getCondition") else error.getErrorClass)()
    return found


def java_exception(error: Exception) -> JavaObject | None:
    """Return the JVM's exception behind one of PySpark; None for one that came from a server."""
    return error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)


def sql_state(condition: str) -> str:
    """Return the SQLSTATE of a condition, which Spark 3.5 has in no message; empty if this process has no JVM."""
    jvm = SparkContext._jvm  # noqa: SLF001 PySpark's exceptions have the condition of the outermost cause alone
    try:
        return (jvm.org.apache.spark.SparkThrowableHelper.getSqlState(condition) or "") if jvm is not None else ""
    except Py4JError:  # the JVM has died
        return ""


def server_trace(error: Exception) -> str:
    """Return the trace of an exception that a Spark Connect server sent, with its causes; empty for another one."""
    found: str | None = error.getStackTrace() if hasattr(error, "getStackTrace") else None
    return found or ""


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Return all settings of the session, secret ones included."""
    if hasattr(spark.conf, "getAll"):
        return dict(spark.conf.getAll)
    entries = spark._jsparkSession.conf().getAll().toIndexedSeq()  # noqa: SLF001 Spark 3.5 has no other way to secret ones
    pairs = (entries.apply(index) for index in range(entries.length()))
    return {str(pair._1()): str(pair._2()) for pair in pairs}  # noqa: SLF001 Scala's names


def file_metadata(rows: DataFrame, name: str) -> Column:
    """Return a field of Spark's metadata of a row's file; this also works where a column is called `_metadata`."""
    if hasattr(rows, "metadataColumn"):
        return rows.metadataColumn("_metadata").getField(name)
    return Column(rows._jdf.metadataColumn("_metadata")).getField(name)  # noqa: SLF001 in Spark 3.5, Scala alone has it


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return the table's rows."""
    if hasattr(DataFrame, "toArrow"):  # the Spark that gives Arrow's tables also takes them
        return spark.createDataFrame(table)
    types = ", ".join(f"`{field.name}` {_SQL_TYPES[field.type]}" for field in table.schema)
    return spark.createDataFrame(table.to_pandas(integer_object_nulls=True), types)


def for_thread(spark: SparkSession, work: _Work) -> _Work:
    """Return the work for another thread: in a classic session, its jobs have the description of this one's."""
    if not is_classic(spark):
        return work
    made = inheritable_thread_target(spark)
    # Spark 3.5 takes the function itself: it has wrapped the session as if that were one.
    described: _Work = inheritable_thread_target(work) if hasattr(made, "__wrapped__") else made(work)
    return described


def arrow_table(rows: DataFrame) -> pa.Table:
    """Return the rows as a table of Arrow."""
    if hasattr(rows, "toArrow"):
        return rows.toArrow()
    # What `toPandas` begins with in Spark 3.5; pandas has no integers beside NULL.
    return pa.Table.from_batches(rows._collect_as_arrow(), to_arrow_schema(rows.schema))  # noqa: SLF001


def observed(counted: Observation) -> Counter[str]:
    """Return the counts by name, after the query. Raises what Spark raises, and PySparkException if none come.

    Spark sends them to itself as an event, and drops events when it has many. Some Sparks then wait without a limit.
    """
    found = futures.Future[Counter[str]]()

    def ask() -> None:
        try:
            found.set_result(Counter(counted.get))
        except Exception as error:  # noqa: BLE001 it is raised in the thread that waits, such as that the JVM has died
            found.set_exception(error)

    # The thread of a pool would keep the process from ending.
    Thread(target=ask, name="counts", daemon=True).start()
    try:
        return found.result(_EVENT_SECONDS)
    except futures.TimeoutError as error:
        raise PySparkException(f"Spark sent no counts within {_EVENT_SECONDS:.0f} s of the query") from error


def valid_utf8(text: Column) -> Column:
    """Return the text with U+FFFD for bytes that are no UTF-8."""
    if hasattr(F, "make_valid_utf8"):
        return F.make_valid_utf8(text)
    return F.decode(text.cast("binary"), "UTF-8")  # from Spark 4.0 on, this raises an error


_SQL_TYPES = {
    pa.string(): "STRING",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.list_(pa.int64()): "ARRAY<BIGINT>",
}


@lru_cache(maxsize=64)
def lacking_types(schema_string: str) -> tuple[tuple[str, str], ...]:
    """Return the columns of a Delta schema with a type that the installed PySpark doesn't know, and what has it."""
    found = list[tuple[str, str]]()
    for field in json.loads(schema_string)["fields"]:
        try:
            StructField.fromJson(field)
        except (PySparkException, KeyError, ValueError) as error:
            name = next((name for name in _SINCE if f'"{name}"' in json.dumps(field)), None)
            said = str(error).partition("\n")[0]
            why = f"Spark {_SINCE[name]} or newer has {name}" if name else f"it has no such type ({said})"
            found.append((field["name"], why))
    return tuple(found)
