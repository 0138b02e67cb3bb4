"""Checks the condition and the expressions of a table, on the schema alone: no row is read.

Spark's public analysis says whether an expression fits the schema, and which types its parts have. Its parsed text says
of what it is made (`expression_parts`). So the same check works on all versions of Spark, and through Spark Connect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from mirror_assets.column_types import Family, column_type
from mirror_assets.encode.expression_parts import called_functions, part_problem, readings
from mirror_assets.encode.functions import OWN_FUNCTION
from mirror_assets.redaction import redacted, redacted_error
from mirror_assets.source.schema import LandedColumn, Projection, Schema, parse_schema
from mirror_assets.source.sql_columns import SqlNotParsed, columns_used
from mirror_assets.spark_api import SPARK_ERRORS
from mirror_assets.spark_messages import spark_facts
from mirror_assets.spark_names import quoted

_OTHER_COLUMNS = "it reads a column that isn't found in its text; write it in another way"
_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."
_REASON = re.compile(r"\] (.*?)(?: SQLSTATE|;|\(line |$)", re.DOTALL)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_VALUE = "value"
# Metadata that a Spark with collations makes part of the type.
_COLLATIONS = "__COLLATIONS"
_COLLATED = "it reads a column with a collation, which Spark has from version 4.0 on; run with a newer Spark"
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
    give the same value.
    """
    rows = spark.createDataFrame([], StructType.fromJson(json.loads(schema_string)))
    schema, found = parse_schema(schema_string), list[ExpressionProblem]()
    if projection.where:
        where = projection.where
        message = _refused(lambda: rows.where(F.expr(where))) or _problem(rows, where, schema)
        found += [ExpressionProblem(None, message)] if message else []
    for column in projection.computed:
        message = _column_problem(rows, column, schema, is_key=column.name in keys)
        found += [ExpressionProblem(column.name, message)] if message else []
    return tuple(replace(problem, message=redacted(problem.message)) for problem in found)


def _column_problem(rows: DataFrame, column: LandedColumn, schema: Schema, *, is_key: bool) -> str:
    """Return the mistake in the expression, in its value, or in the cast to the column's type."""

    def value() -> DataFrame:
        return rows.select(F.expr(column.sql).alias(_VALUE))

    def landed() -> DataFrame:
        return rows.select(F.expr(column.sql).cast(column.type).alias(_VALUE))

    is_time = column_type(column.type).family is Family.TIME
    return (
        _refused(value)
        or _problem(rows, column.sql, schema)
        or _unfit(value(), is_key=is_key)
        or _refused(landed)
        or (_moving(rows, f"CAST(\n{column.sql}\nAS {column.type})") if is_time else "")
    )


def _refused(analysed: Callable[[], DataFrame]) -> str:
    """Return why Spark refuses an expression, or an empty text."""
    try:
        analysed().schema  # noqa: B018 through Spark Connect, nothing is analysed before
    except SPARK_ERRORS as error:
        return _reason(spark_facts(redacted_error(error)).classes_and_text)
    return ""


def _reason(text: str) -> str:
    """Return Spark's reason and the place in the expression, without the plan that follows."""
    found, place = _REASON.search(text), _PLACE.search(text)
    at = f" (line {place[1]}, character {int(place[2]) + 1} of the expression)" if place else ""
    return f"{' '.join(found[1].split()).rstrip('.') if found else 'Spark refuses it'}{at}"


def _problem(rows: DataFrame, sql: str, schema: Schema) -> str:
    """Return why an expression that Spark accepts isn't determined by its row, or can't be checked; or an empty text.

    Spark proves the columns that were found in the text: it has to understand the expression with these alone.
    """
    try:
        found = part_problem(sql, schema) or _replaced(rows.sparkSession, sql) or _moving(rows, sql)
        if found:
            return found
        used = columns_used(sql, schema)
        rows.select(*map(quoted, used)).select(F.expr(sql)).schema  # noqa: B018 see above
        if any(_COLLATIONS in rows.schema[name].metadata for name in used):
            return _COLLATED
    except SqlNotParsed as error:
        return str(error)
    except PySparkException:
        return _OTHER_COLUMNS
    return ""


def _replaced(spark: SparkSession, sql: str) -> str:
    """Return why an expression can't call a function that replaces Spark's own in this session, or an empty text."""
    for name in called_functions(sql):
        try:
            if not (spark.catalog.getFunction(quoted(name)).className or "").startswith(_SPARKS_OWN):
                return OWN_FUNCTION
        except PySparkException:
            continue  # it is a part of Spark's grammar, such as timestampadd, and can't be replaced
    return ""


def _moving(rows: DataFrame, sql: str) -> str:
    """Return why a text that is read as a date or a timestamp is another at each reading, or an empty text."""
    found = readings(sql)
    types = _types(rows, list(dict.fromkeys(text for one in found for text in (one.value, one.beside))))
    return next((why for one in found if (why := one.problem(types[one.value], types[one.beside]))), "")


def _types(rows: DataFrame, parts: Sequence[str]) -> dict[str, str]:
    """Return the types of parts of an expression, as Spark spells them; empty for one that has no type alone."""
    if not parts:
        return {}
    try:
        schema = rows.select(*(F.expr(part).alias(_VALUE) for part in parts)).schema
    except SPARK_ERRORS:
        middle = len(parts) // 2
        return {parts[0]: ""} if middle == 0 else _types(rows, parts[:middle]) | _types(rows, parts[middle:])
    return {part: field.dataType.simpleString() for part, field in zip(parts, schema, strict=True)}


def _unfit(value: DataFrame, *, is_key: bool) -> str:
    kind = value.schema[_VALUE].dataType.simpleString()
    if column_type(kind).family is Family.NESTED or kind.startswith(_NO_COLUMNS):
        return f"its value is {kind}, which can't land; to land it as text, use to_json"
    return "a key can't be NULL" if is_key and kind == "void" else ""
