"""The columns that an expression reads, compared with the columns that Spark's analyzer finds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from mirror_assets.source.schema import Schema, parse_schema
from mirror_assets.source.sql_columns import SqlNotParsed, columns_used
from mirror_assets.spark_names import quoted
from mirror_assets_tests.catalyst import analyzed, items

_DDL = (
    "id INT, name STRING, at TIMESTAMP, day DATE, x INT, xs ARRAY<INT>, info STRUCT<id: INT, name: STRING, `a.b`: INT>"
    ", m MAP<STRING, INT>, `2fa` STRING, `it's` STRING, `état` STRING, `a``b` STRING, `a.b` INT, `id\u200b` INT, "
    "user STRING, current_date DATE, comment STRING, `update` INT, upper STRING, `-- x` INT, `/* x */` INT"
)

# Each expression, and the columns that it reads.
READ = {
    "2fa = 'x'": "2fa",
    "`it's` = 'x' AND name = 'it''s'": "name,it's",
    "`état` = 'é'": "état",
    "name = 'DE' -- user's\n AND upper = 'no' OR name = 'a'": "name,upper",
    "name /* id */ || '' -- id": "name",
    "name /* outer /* id */ x */ || ''": "name",
    "upper(upper)": "upper",
    "upper(name)": "name",
    "'it\\'s id' || \"x\" || r'\\d id'": "",
    "`a``b`": "a`b",
    "`a.b` + 1": "a.b",
    "info.id + INFO.`a.b`": "info",
    "info['id'] + xs[x]": "x,xs,info",
    "m.id + m['x']": "m",
    "named_struct('id', x).id": "x",
    "struct(x as id).id": "x",
    "transform(xs, x -> x + id)": "id,xs",
    "transform(xs, X -> x + id)": "id,xs",
    "transform(xs, `X` -> x + 1)[x]": "x,xs",
    "transform(xs, (x, id) -> x + id)": "xs",
    "aggregate(xs, 0, (acc, e) -> acc + e, acc -> acc * x)": "x,xs",
    "transform(array(info), x -> x.id)": "info",
    "transform(xs, x -> exists(xs, id -> id > x))[id]": "id,xs",
    "ID + Id": "id",
    "`id\u200b` + 1": "id\u200b",
    "id\u00a0+ 1": "id",
    "`-- x` + `/* x */`": "-- x,/* x */",
    "user || ''": "user",
    "current_date": "current_date",
    "comment = 'x'": "comment",
    "update + 1": "update",
    "datediff(day, at, day)": "at,day",
    "date_add(day, 1)": "day",
    "extract(day FROM at)": "at",
    "at + interval 1 day": "at",
    "timestampadd(DAY, id, at)": "id,at",
    "id::string": "id",
    "cast(m as map<string, string>)['id']": "m",
    "from_json(name, 'id INT').id": "name",
    "case id when x then name else user end": "id,name,x,user",
    "trim(both 'x' from name)": "name",
    "substring(name from id)": "id,name",
    "position(name in user)": "name,user",
    "name like user escape '!'": "name,user",
    "name like any (user, 'x')": "name,user",
    "name collate UTF8_LCASE": "name",
    "id <=> x": "id,x",
    "to_json(struct(*))": "*",
    "1": "",
    "1L + 2S + 3BD + 1e3 + X'1F'": "",
}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], _DDL)


def _schema(rows: DataFrame) -> Schema:
    return parse_schema(rows.schema.json())


def _by_spark(rows: DataFrame, sql: str) -> list[str]:
    read = {str(one.name()).lower() for one in items(analyzed(rows, sql).references().toSeq())}
    return [name for name in rows.columns if name.lower() in read]


@pytest.mark.parametrize("sql", READ)
def test_the_columns_of_an_expression_are_those_that_spark_reads(rows: DataFrame, sql: str) -> None:
    found = list(columns_used(sql, _schema(rows)))
    expected = rows.columns if READ[sql] == "*" else READ[sql].split(",") if READ[sql] else []
    assert found == expected
    if "1F" not in sql:  # numbers alone don't add up with binaries
        assert found == _by_spark(rows, sql)


_NAMES = st.sampled_from(
    ["id", "x", "2fa", "it's", "état", "a`b", "a.b", "id\u200b", "-- x", "/* x */", "upper", "user"]
)
# Spark doesn't bind variables with a dot in their name; such an expression is refused before a row is read.
_VARIABLES = _NAMES.filter(lambda name: "." not in name)
_SPACE = st.sampled_from([" ", "\n", " /* id, x */ ", " -- it's x\n"])
_LITERALS = st.sampled_from(["'id'", "'it''s x'", "'\\' id'", '"x"', "1", "r'x\\'", "'-- id'"])
_VALUES = st.recursive(
    _NAMES.map(quoted) | _LITERALS | _NAMES.map(lambda name: quoted(name.upper())),
    lambda inner: st.one_of(
        st.tuples(inner, _SPACE, inner).map(lambda parts: f"concat({parts[0]}{parts[1]},{parts[1]}{parts[2]})"),
        st.tuples(_VARIABLES, inner).map(
            lambda parts: (
                f"transform(array('a'), {quoted(parts[0])} -> concat({quoted(parts[0].upper())}, {parts[1]}))[0]"
            )
        ),
        st.tuples(_NAMES, inner).map(lambda parts: f"named_struct('f', {parts[1]}, 'g', {quoted(parts[0])}).f"),
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(sql=_VALUES)
def test_nested_expressions_read_what_spark_reads(rows: DataFrame, sql: str) -> None:
    assert list(columns_used(sql, _schema(rows))) == _by_spark(rows, sql)


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("name ||", ""),
        ("id,\n x:y.z", "(line 2, character 5 of the expression)"),
        ("`secret", ""),
        ("name !< 'secret'", "(line 1, character 6 of the expression)"),
        ("1); GRANT 'secret'; SELECT (1", ""),
        pytest.param("id -- Spark continues it \\\n ' \n || 'secret' || uuid() -- '", "", id="comment"),
        pytest.param(f"{'(' * 900}'secret'{')' * 900}", "nested too deeply", id="nested"),
    ],
)
def test_what_cant_be_parsed_is_reported_without_its_text(
    caplog: pytest.LogCaptureFixture, sql: str, place: str
) -> None:
    with pytest.raises(SqlNotParsed, match="sqlglot can't parse it") as refused:
        columns_used(sql, parse_schema(json.dumps({"type": "struct", "fields": []})))
    assert str(refused.value).endswith(place)
    assert "secret" not in f"{refused.value}{caplog.text}"
