"""Finds the columns that an expression in Spark SQL reads, by parsing it with sqlglot: no Spark needed."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from mirror_assets.source.schema import Schema

_NOT_PARSED = (
    "the columns that it reads can't be found, because sqlglot can't parse it; put names into backticks, or write it "
    "in another way"
)
# Its warnings quote expressions, which may have secrets.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
# The first of three arguments of these functions is a unit such as DAY.
_WITH_UNIT = ("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff", "timediff")
# Spark continues such a comment on the next line, sqlglot does not.
_LONG_COMMENT = re.compile(r"--[^\n]*\\\r?\n")
_SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTR", "SUBSTRING", "OVERLAY")
# Where an identifier in a lambda function is no variable: sqlglot makes variables identifiers, and columns Column.
_NO_VARIABLES = (
    *((exp.Column, part) for part in exp.Column.arg_types),
    *((exp.Dot, "expression"), (exp.Lambda, "expressions"), (exp.Alias, "alias"), (exp.ColumnDef, "this")),
)


class _SparkAsWritten(Spark):
    """Spark's SQL with every function as it is written; sqlglot's own dialect replaces many by equivalents.

    Without parentheses, names such as `current_date` are columns here: so they are for Spark, if the table has them.
    """

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {
            name: parser for name, parser in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name in ("ANY", "CASE")
        }
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
        }


class SqlNotParsed(ValueError):
    """sqlglot can't parse an expression; the message has the place in it but none of its text, which may be secret."""


def parse_sql(sql: str) -> exp.Select:
    """Parse an expression in Spark SQL. Raises SqlNotParsed.

    As a selected value, it may begin with a name that would begin another statement, such as `comment` or `set`.
    """
    try:
        statement = parse_one(f"SELECT (\n{sql}\n)", read=_SparkAsWritten)
    except SqlglotError as error:
        raise SqlNotParsed(f"{_NOT_PARSED}{_place(error)}") from None
    except RecursionError:
        raise SqlNotParsed(f"{_NOT_PARSED}: it is nested too deeply") from None
    if not isinstance(statement, exp.Select) or statement.find(exp.Command) or _LONG_COMMENT.search(sql):
        raise SqlNotParsed(_NOT_PARSED)
    return _with_columns(statement)


def _with_columns(statement: exp.Select) -> exp.Select:
    """Make columns of the variables of lambda functions, and no columns of units: `timestampadd(DAY, 1, at)`."""
    functions = list(statement.find_all(exp.Lambda))
    for name in [name for function in functions for name in function.this.find_all(exp.Identifier)]:
        if (type(name.parent), name.arg_key) not in _NO_VARIABLES:
            name.replace(exp.column(name.copy()))
    for call in statement.find_all(exp.Anonymous):
        if call.name.lower() in _WITH_UNIT and len(call.expressions) == 3:
            call.expressions[0].replace(exp.var(call.expressions[0].name))
    return statement


def columns_used(sql: str, schema: Schema) -> tuple[str, ...]:
    """Return the source's columns that an expression reads, in the order of the schema. Raises SqlNotParsed.

    Names are resolved as Spark does, ignoring case. Of a name with dots, the first part is the column, and the others
    are fields in it. The variables of lambda functions are no columns.
    """
    names = names_read(sql)
    return tuple(field.name for field in schema.fields if "*" in names or field.name.lower() in names)


@lru_cache(maxsize=1024)
def names_read(sql: str) -> frozenset[str]:
    """Return the lower names that an expression reads, or `*`; each plan of a table asks. Raises SqlNotParsed."""
    columns = (node for node in parse_sql(sql).walk() if isinstance(node, (exp.Column, exp.Star)))
    names = ("*" if isinstance(node, exp.Star) else _name_read(node) for node in columns)
    return frozenset(name for name in names if name)


def _name_read(column: exp.Column) -> str:
    """Return the column's lower name, or an empty text for a variable of a lambda function around it.

    sqlglot compares the case of variables, Spark does not.
    """
    name = column.parts[0].name.lower() if column.parts else ""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if name in {variable.name.lower() for variable in around.expressions}:
            return ""
        around = around.find_ancestor(exp.Lambda)
    return name


def _place(error: SqlglotError) -> str:
    """Return the place in the expression, which begins on the second line of what is parsed."""
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    line, column = error.errors[0].get("line"), error.errors[0].get("col")
    return f" (line {line - 1}, character {column} of the expression)" if line and column else ""
