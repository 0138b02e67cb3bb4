"""Finds the columns that an expression in Spark SQL reads, by parsing it with sqlglot: no Spark needed."""

from __future__ import annotations

import logging
from functools import lru_cache

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
# Without parentheses, Spark reads these names as columns if the table has such columns.
_BARE_FUNCTIONS = tuple((kind, token.name.lower()) for token, kind in Spark.Parser.NO_PAREN_FUNCTIONS.items())


class SqlNotParsed(ValueError):
    """sqlglot can't parse an expression; the message has the place in it but none of its text, which may be secret."""


def parse_sql(sql: str) -> exp.Expression:
    """Parse an expression in Spark SQL. Raises SqlNotParsed.

    As a selected value, it may begin with a name that would begin another statement, such as `comment` or `set`.
    """
    try:
        statement = parse_one(f"SELECT (\n{sql}\n)", read=Spark)
    except SqlglotError as error:
        raise SqlNotParsed(f"{_NOT_PARSED}{_place(error)}") from None
    except RecursionError:
        raise SqlNotParsed(f"{_NOT_PARSED}: it is nested too deeply") from None
    if not isinstance(statement, exp.Select) or next(statement.find_all(exp.Command), None):
        raise SqlNotParsed(_NOT_PARSED)
    return statement


def columns_used(sql: str, schema: Schema) -> tuple[str, ...]:
    """Return the source's columns that an expression reads, in the order of the schema. Raises SqlNotParsed.

    Names are resolved as Spark does, ignoring case. Of a name with dots, the first part is the column, and the others
    are fields in it. The variables of lambda functions are no columns.
    """
    names = _names_in(sql)
    return tuple(field.name for field in schema.fields if "*" in names or field.name.lower() in names)


@lru_cache(maxsize=1024)
def _names_in(sql: str) -> frozenset[str]:
    """Return the lower names that an expression reads, or `*`; each plan of a table asks."""
    names = set[str]()
    for node in parse_sql(sql).walk():
        if isinstance(node, exp.Column) and node.parts and not _is_variable(node, name := node.parts[0].name):
            names.add(name.lower())
        elif isinstance(node, exp.Star):
            names.add("*")
        else:
            names.update(name for kind, name in _BARE_FUNCTIONS if isinstance(node, kind))
    return frozenset(names)


def _is_variable(column: exp.Column, name: str) -> bool:
    """Return whether the name is a variable of a lambda function around it; sqlglot compares their case, Spark not."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if name.lower() in {variable.name.lower() for variable in around.expressions}:
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _place(error: SqlglotError) -> str:
    """Return the place in the expression, which begins on the second line of what is parsed."""
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    line, column = error.errors[0].get("line"), error.errors[0].get("col")
    return f" (line {line - 1}, character {column} of the expression)" if line and column else ""
