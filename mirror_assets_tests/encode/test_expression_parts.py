"""What an expression is made of, from its parsed text; `pipeline/test_expressions.py` has the whole check."""

from __future__ import annotations

import pytest

from mirror_assets.encode.expression_parts import Reading, part_problem, readings
from mirror_assets.source.schema import Field, Schema

_SCHEMA = Schema(tuple(Field(name, "string") for name in ("id", "name", "at", "user", "current_date")))


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("array(uuid())[0]", "would differ"),
        ("array(name)[0]", "sqlglot calls Array; write element_at(array(a, b), 1)"),
        ("`RAND` /* x */ ()", "would differ"),
        ("cast(rand() as string)", "would differ"),
        ("id -- \r + rand()", "would differ"),
        ("builtin.upper(name)", "not Spark's own"),
        ("nobody_knows(name)", "not in the list of those that it may call: nobody_knows"),
        ("theta_union(id, id)", "sketches"),
        ("(id t)", "sqlglot calls Alias"),
        ("EXISTS (FROM t)", "subquery"),
        ("any(id)", "computed from one row"),
        ("first_of_session", "depends on the session"),
        ("session.name", "depends on the session"),
        ("now", "depends on the time"),
        ("current_timestamp", "depends on the time"),
        ("name || '${spark.app.name}'", "depends on the session"),
        ("unix_timestamp()", "depends on the time"),
        ("convert_timezone('UTC', at)", "depends on the session"),
        ("id -> at", "sqlglot calls JSONExtract"),
        ("n'text'", "sqlglot calls National"),
    ],
)
def test_parts_that_differ_or_cant_be_checked_are_refused(sql: str, problem: str) -> None:
    assert problem in part_problem(sql, _SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "user || current_date",
        "`user` like any ('a', upper('b'))",
        "aggregate(array(1), 0, (sum, rand) -> sum + rand)",
        "named_struct('now', 1).now",
        "unix_timestamp(at)",
        "'rand()' || \"uuid()\" -- now()",
    ],
)
def test_parts_that_only_look_like_those_are_accepted(sql: str) -> None:
    assert part_problem(sql, _SCHEMA) == ""


@pytest.mark.parametrize(
    ("sql", "value", "beside"),
    [
        ("transform(array(at), x -> X < name)", "((array(at))[0])", "(name)"),
        ("filter(at, (x, i) -> i = name)", "(0)", "(name)"),
        ("aggregate(at, name, (a, x) -> x)", "((at)[0])", "(name)"),
        ("transform(at, x -> exists(x, y -> y.b = name))", "(((at)[0])[0].b)", "(name)"),
        ("map_filter(at, (k, v) -> v = name)", "(map_values((at))[0])", "(name)"),
        ("hour(if(id = 1, name, at))", "(if(id = 1, name, at))", "CAST(NULL AS TIMESTAMP)"),
    ],
)
def test_values_in_lambda_functions_are_shown_by_values_of_their_arguments(sql: str, value: str, beside: str) -> None:
    found = {(one.value, one.beside) for one in readings(sql)}
    assert (value, beside) in found, found


def test_a_text_is_read_as_the_type_beside_it() -> None:
    column = Reading("name", "at", constant=False, literal=None)
    assert "give the format" in column.problem("string", "timestamp")
    assert "give the format" in column.problem("string collate UTF8_LCASE", "map<timestamp,int>")
    assert "give the format" in column.problem("", "")
    assert "give the format" in column.problem("array<string>", "array<timestamp>")
    assert not column.problem("string", "date")
    assert not column.problem("string", "timestamp_ntz")
    assert not column.problem("date", "timestamp")
    assert not column.problem("struct<a:string,b:timestamp>", "struct<a:string,b:timestamp>")
    computed = Reading("lower('NOW')", "day", constant=True, literal=None)
    assert "computes a text" in computed.problem("string", "date")
    word = Reading("'now'", "day", constant=True, literal="now")
    assert "depends on the time" in word.problem("string", "timestamp_ntz")
    assert not word.problem("string", "string")
