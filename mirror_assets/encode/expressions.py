"""Checks the condition and the expressions of a table by Spark's analyzer, on the schema alone: no row is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from mirror_assets.column_types import Family, column_type
from mirror_assets.encode.jvm import Jvm, items
from mirror_assets.redaction import redacted, redacted_error
from mirror_assets.source.schema import LandedColumn, Projection, Schema, parse_schema
from mirror_assets.source.sql_columns import SqlNotParsed, columns_used, parse_sql
from mirror_assets.spark_messages import spark_facts
from mirror_assets.spark_names import quoted

_ONE_ROW = "it must be computed from one row: aggregates, window functions and generators can't be"
_SUBQUERY = "it has a subquery; it must be computed from the columns of one row"
_BY_TIME = "its value depends on the time, so it would differ at each reading"
_BY_DAY = "a text that is a time without a day is one of today, so its value depends on the day"
_BY_TEXT = (
    "it reads a text as a timestamp, and a text that is a time without a day is one of today; give the format of the "
    "text, as in to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')"
)
_OTHER_COLUMNS = "it reads a column that isn't found in its text; write it in another way"
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
_REPLACEABLE = f"{_SPARKS_OWN}RuntimeReplaceable"
_PARSERS = ("JsonToStructs", "CsvToStructs", "XmlToStructs")
_WITH_A_DAY = exp.DataType.TEMPORAL_TYPES - {exp.DataType.Type.TIME, exp.DataType.Type.TIMETZ}
# What Spark reads as a time that moves, in texts that don't depend on a row: special words, with or without a zone; and
# as one of today: a time without a day.
_NOW = re.compile(r"\s*(?:now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_TIME_OF_DAY = re.compile(r"\s*(?:T\d{1,2}|T?\d{1,2}:).*", re.DOTALL)
_HAS_TIMESTAMP = re.compile(r"\btimestamp\b")
_HAS_TEXT = re.compile(r"\b(?:string|variant|char|varchar)\b")
_LOGGERS = (
    *("util.Utils", "executor.Executor", "scheduler.TaskSetManager"),
    *("sql.execution.datasources.FileFormatWriter", "sql.delta.files.DeltaFileFormatWriter"),
    "sql.util.ExecutionListenerBus",  # Spark 4.0, where a query with an Observation has failed
)
_REASON = re.compile(r"\] (.*?)(?: SQLSTATE|;|$)", re.DOTALL)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_VALUE = "value"
_NO_COLUMNS = ("interval", "object", "udt")


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
    jvm, schema = Jvm(spark), parse_schema(schema_string)
    jvm.activate()
    _hide_values(jvm)
    struct = jvm.root.org.apache.spark.sql.types.DataType.fromJson(schema_string)
    rows = jvm.frame(jvm.session.createDataFrame(jvm.java_list(), struct))
    found = list[ExpressionProblem]()
    if projection.where:
        where = projection.where
        message = _problem(where, lambda: rows.where(F.expr(where)), _condition) or _unread(rows, where, schema)
        found += [ExpressionProblem(None, message)] if message else []
    for column in projection.computed:
        message = _column_problem(rows, column, is_key=column.name in keys) or _unread(rows, column.sql, schema)
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
    try:
        plan = analysed()._jdf.queryExecution().analyzed()  # noqa: SLF001 PySpark has no public way to the plan
    except (PySparkException, Py4JJavaError) as error:
        return _reason(spark_facts(redacted_error(error)).classes_and_text)
    expression = expression_of(plan)
    if expression is None:
        return _ONE_ROW
    found = chain([_written_time(sql)], map(_refusal, _parts(expression)))
    reason = next((reason for reason in found if reason), "")
    return reason or ("" if expression.deterministic() else "its value would differ at each reading")


def _refusal(part: JavaObject) -> str:
    """Return why an expression with this part is refused, or an empty text."""
    package, _, name = str(part.getClass().getName()).rpartition(".")
    if reason := _REFUSED.get(name):
        return reason
    return _read_time(part, name) if f"{package}.".startswith(_SPARKS_OWN) else _OWN_FUNCTION


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
    """Yield the expression and all below it; of one that Spark replaces by another, both."""
    yield expression
    for child in items(expression.children()):
        yield from _parts(child)
    if is_instance_of(SparkContext._gateway, expression, _REPLACEABLE):  # noqa: SLF001
        yield from _parts(expression.replacement())


def _written_time(sql: str) -> str:
    """Return why a date or a timestamp that is written in the text moves, or an empty text.

    Spark's parser has already replaced a literal such as `date 'today'` by its value. What can't be parsed is refused
    by `_unread`.
    """
    try:
        casts = parse_sql(sql).find_all(exp.Cast)
    except SqlNotParsed:
        return ""
    moving = (_moving(cast.this.name) for cast in casts if cast.is_type(*_WITH_A_DAY) and _is_text(cast.this))
    return next((reason for reason in moving if reason), "")


def _is_text(value: exp.Expression) -> bool:
    return isinstance(value, exp.RawString) or (isinstance(value, exp.Literal) and bool(value.is_string))


def _read_time(part: JavaObject, name: str) -> str:
    """Return why a part that reads a text as a date or a timestamp depends on the time, or an empty text."""
    if name not in ("Cast", "VariantGet", *_PARSERS):
        return ""
    source, made = (str(one.dataType().simpleString()) for one in (part.children().head(), part))
    if name == "Cast" and source == "string" and column_type(made).family is Family.TIME and part.child().foldable():
        return _moving(_text_of(part.child()))
    is_open = _HAS_TEXT.search(source) and _HAS_TIMESTAMP.search(made)
    return _BY_TEXT if is_open and not (name in _PARSERS and part.options().contains("timestampFormat")) else ""


def _text_of(constant: JavaObject) -> str:
    """Return the text that a constant expression has; empty for NULL, and where it can't be computed alone."""
    try:
        value = constant.eval(None)
    except Py4JJavaError:
        return ""
    return "" if value is None else str(value.toString())


def _moving(text: str) -> str:
    """Return why a text is another day or time at each reading, or an empty text."""
    if _NOW.fullmatch(text):
        return _BY_TIME
    return _BY_DAY if _TIME_OF_DAY.fullmatch(text) else ""


def _unread(rows: DataFrame, sql: str, schema: Schema) -> str:
    """Return why the columns that an expression reads can't be found, or an empty text.

    Spark proves the columns that were found: it has to understand the expression with these alone.
    """
    try:
        used = columns_used(sql, schema)
        rows.select(*map(quoted, used)).select(F.expr(sql))
    except SqlNotParsed as error:
        return str(error)
    except PySparkException:
        return _OTHER_COLUMNS
    return ""


def _unfit(value: DataFrame, *, is_key: bool) -> str:
    kind = value.schema[_VALUE].dataType.simpleString()
    if column_type(kind).family is Family.NESTED or kind.startswith(_NO_COLUMNS):
        return f"its value is {kind}, which can't land; to land it as text, use to_json"
    return "a key can't be NULL" if is_key and kind == "void" else ""
