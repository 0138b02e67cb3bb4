"""Checks the condition and the expressions of a table by Spark's analyzer, on the schema alone: no row is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mirror_assets.encode.private.jvm import Jvm, items
from mirror_assets.redaction import redacted, redacted_error
from mirror_assets.source.projection import Projection
from mirror_assets.source.schema import LandedColumn
from mirror_assets.spark_facts import spark_facts

_ONE_ROW = "it must be computed from one row: aggregates, window functions and generators can't be"
_SUBQUERY = "it has a subquery; it must be computed from the columns of one row"
_BY_TIME = "its value depends on the time, so it would differ at each reading"
_BY_SESSION = "its value depends on the session"
_OWN_FUNCTION = "it calls a function that is not Spark's own"
# Expressions that Spark regards as deterministic, or plans as such, by the names of their classes.
_REFUSED = {
    **dict.fromkeys(("ScalarSubquery", "Exists", "ListQuery", "InSubquery", "LateralSubquery"), _SUBQUERY),
    **dict.fromkeys(("CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "CurrentTime"), _BY_TIME),
    **dict.fromkeys(("CurrentUser", "CurrentCatalog", "CurrentDatabase", "CurrentPath"), _BY_SESSION),
    **dict.fromkeys(("SparkVersion", "CurrentTimeZone", "VariableReference"), _BY_SESSION),
    **dict.fromkeys(("ScalaUDF", "PythonUDF", "PythonUDAF", "PythonUDTF", "ApplyFunctionExpression"), _OWN_FUNCTION),
    **dict.fromkeys(("CallMethodViaReflection", "TryReflect"), _OWN_FUNCTION),
    **dict.fromkeys(("RaiseError", "AssertTrue"), "it raises errors, which would stop the table"),
    "AesEncrypt": "its value has a random part, so it would differ at each reading",
}
_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."
_NOW = re.compile(
    r"\b(?:timestamp|timestamp_ntz|timestamp_ltz|date)\s*['\"]\s*(?:now|today|tomorrow|yesterday)", re.IGNORECASE
)
_LOGGERS = (
    *("util.Utils", "executor.Executor", "scheduler.TaskSetManager"),
    *("sql.execution.datasources.FileFormatWriter", "sql.delta.files.DeltaFileFormatWriter"),
    "sql.util.ExecutionListenerBus",  # Spark 4.0, where a query with an Observation has failed
)
_REASON = re.compile(r"\] (.*?)(?: SQLSTATE|;|$)", re.DOTALL)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_VALUE = "value"
_UNFIT = ("struct", "array", "map", "variant", "interval", "object", "udt")


@dataclass(frozen=True)
class ExpressionProblem:
    """A mistake in the expression of a column, or in the condition (None)."""

    column: str | None
    message: str


def expression_problems(
    spark: SparkSession, schema_string: str, projection: Projection, keys: Sequence[str]
) -> tuple[ExpressionProblem, ...]:
    """Return the mistakes in the projection of a source with this schema, at most one of each expression.

    An expression is refused if its value isn't determined by its row: the same row is read more than once, and has to
    give the same value. Spark's own flag doesn't cover the time, the session and subqueries.
    """
    jvm = Jvm(spark)
    jvm.activate()
    _hide_values(jvm)
    struct = jvm.root.org.apache.spark.sql.types.DataType.fromJson(schema_string)
    rows = jvm.frame(jvm.session.createDataFrame(jvm.java_list(), struct))
    found = list[ExpressionProblem]()
    if projection.where:
        where = projection.where
        message = _problem(where, lambda: rows.where(F.expr(where)), _condition)
        found += [ExpressionProblem(None, message)] if message else []
    for column in projection.computed:
        message = _column_problem(rows, column, is_key=column.name in keys)
        found += [ExpressionProblem(column.name, message)] if message else []
    return tuple(replace(problem, message=redacted(problem.message)) for problem in found)


def _column_problem(rows: DataFrame, column: LandedColumn, *, is_key: bool) -> str:
    """Return the mistake in the expression, in its value, or in the cast to the column's type."""

    def value() -> DataFrame:
        return rows.select(F.expr(column.sql).alias(_VALUE))

    def landed() -> DataFrame:
        return rows.select(F.expr(column.sql).cast(column.type).alias(_VALUE))

    return (
        _problem(column.sql, value, _only_value)
        or _unfit(value(), is_key=is_key)
        or _problem(column.sql, landed, _only_value)
    )


def _hide_values(jvm: Jvm) -> None:
    """Stop the JVM on this machine from logging errors of queries and tasks, which have values of rows and secrets.

    The errors themselves still reach the caller.
    """
    log4j = jvm.root.org.apache.logging.log4j
    for name in _LOGGERS:
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{name}", log4j.Level.OFF)


def _problem(sql: str, analysed: Callable[[], DataFrame], expression_of: Callable[[JavaObject], JavaObject]) -> str:
    """Return the mistake in an expression, or an empty text; `expression_of` takes it out of the analyzed plan."""
    if _NOW.search(sql):
        return _BY_TIME
    try:
        plan = analysed()._jdf.queryExecution().analyzed()  # noqa: SLF001 PySpark has no public way to the plan
    except (PySparkException, Py4JJavaError) as error:
        return _reason(spark_facts(redacted_error(error)).classes_and_text)
    expression = expression_of(plan)
    if expression is None:
        return _ONE_ROW
    for part in _parts(expression):
        name = str(part.getClass().getName())
        if reason := _REFUSED.get(name.rpartition(".")[2]):
            return reason
        if not name.startswith(_SPARKS_OWN):
            return _OWN_FUNCTION
    return "" if expression.deterministic() else "its value would differ at each reading"


def _reason(text: str) -> str:
    """Return Spark's reason and the place in the expression, without the plan that follows."""
    found, place = _REASON.search(text), _PLACE.search(text)
    at = f" (line {place[1]}, character {int(place[2]) + 1} of the expression)" if place else ""
    return f"{' '.join(found[1].split()).rstrip('.') if found else 'Spark refuses it'}{at}"


def _condition(plan: JavaObject) -> JavaObject | None:
    is_filter = plan.nodeName() == "Filter" and not plan.child().children().nonEmpty()
    return plan.condition() if is_filter else None


def _only_value(plan: JavaObject) -> JavaObject | None:
    is_of_row = plan.nodeName() == "Project" and not plan.child().children().nonEmpty()
    return plan.projectList().apply(0) if is_of_row and plan.projectList().size() == 1 else None


def _parts(expression: JavaObject) -> Iterator[JavaObject]:
    yield expression
    for child in items(expression.children()):
        yield from _parts(child)


def _unfit(value: DataFrame, *, is_key: bool) -> str:
    kind = value.schema[_VALUE].dataType.simpleString()
    if kind.startswith(_UNFIT):
        return f"its value is {kind}, which can't land; to land it as text, use to_json"
    return "a key can't be NULL" if is_key and kind == "void" else ""
