"""The second conversion of values: it must agree with the encoder's for every value, and shares no code with it."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from mirror_assets.encode.columns import json_text
from mirror_assets.verify.landed_values import json_of
from mirror_assets_tests.spark_4 import IS_SPARK_4

_UTC = datetime.timezone.utc
_TIMES = st.datetimes()
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5) | st.sampled_from(
    ["", '"', "\\", "a\tb\n\x01\x1f", "\x7f\u2028é😀", "null", " x "]
)
Leaf: TypeAlias = tuple[DataType, st.SearchStrategy[object]]
_LEAVES: list[Leaf] = [
    (BooleanType(), st.booleans()),
    (ByteType(), st.integers(-128, 127)),
    (ShortType(), st.integers(-(2**15), 2**15 - 1)),
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (FloatType(), st.floats(width=32)),
    (DoubleType(), st.floats() | st.sampled_from([-0.0, 1e-5, 1e7, 1e300, math.nan, -math.inf])),
    (DecimalType(5, 2), st.decimals(-999, 999, places=2)),
    (DecimalType(20, 12), st.decimals(-999, 999, places=12) | st.sampled_from([Decimal("1E-12"), Decimal("0E-12")])),
    (StringType(), _TEXTS),
    (BinaryType(), st.binary(max_size=80)),
    (DateType(), st.dates()),
    (TimestampType(), _TIMES.map(lambda time: time.replace(tzinfo=_UTC))),
    (TimestampNTZType(), _TIMES),
]
_SIMPLE = st.sampled_from(range(len(_LEAVES))).map(_LEAVES.__getitem__)
_NAMES = st.sampled_from(["a", "b c", "d.e", 'q"x', "back\\slash", "é", "`"])


def _optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


def _array(of: Leaf) -> Leaf:
    return ArrayType(of[0]), st.lists(_optional(of[1]), max_size=3)


def _struct(members: list[tuple[str, Leaf]]) -> Leaf:
    fields = [StructField(name, of[0]) for name, of in members]
    return StructType(fields), st.tuples(*(_optional(of[1]) for _, of in members))


def _as_key(value: object) -> object:
    """Keys that differ in Python only, or not at all in Spark, would repeat."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return tuple(map(_as_key, value)) if isinstance(value, list | tuple) else value


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _map(pair: tuple[Leaf, Leaf]) -> Leaf:
    key, of = pair
    entries = st.lists(st.tuples(key[1].map(_frozen), _optional(of[1])), max_size=3, unique_by=lambda e: _as_key(e[0]))
    return MapType(key[0], of[0]), entries.map(dict)


def _structs(of: st.SearchStrategy[Leaf]) -> st.SearchStrategy[Leaf]:
    return st.lists(st.tuples(_NAMES, of), min_size=1, max_size=3, unique_by=lambda member: member[0]).map(_struct)


# PySpark makes lists of arrays of dates and times, which can't be keys of a dict.
_KEYS = st.one_of(_SIMPLE, _structs(_SIMPLE))
_NESTED = st.recursive(
    _SIMPLE,
    lambda of: st.one_of(of.map(_array), _structs(of), st.tuples(_KEYS, of).map(_map)),
    max_leaves=4,
).filter(lambda leaf: isinstance(leaf[0], ArrayType | MapType | StructType))


@st.composite
def _drawn(draw: st.DrawFn) -> tuple[DataType, list[object]]:
    """A nested type, and some values of it."""
    kind, values = draw(_NESTED)
    return kind, draw(st.lists(_optional(values), min_size=1, max_size=6))


@pytest.mark.long(20)
@given(_drawn())
@example((MapType(DecimalType(20, 12), DateType()), [{Decimal("1E-12"): None, Decimal("1.5"): None}]))
@example((MapType(StructType([StructField("t", TimestampType())]), ByteType()), [{(None,): 1}]))
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_json_text_equals_the_encoders(spark: SparkSession, drawn: tuple[DataType, list[object]]) -> None:
    kind, values = drawn
    schema = StructType([StructField("x", kind)])
    rows = spark.createDataFrame([(value,) for value in values], schema)
    found = rows.select(json_text(F.col("x"), kind), json_of(F.col("x"), kind)).collect()
    assert [row[1] for row in found] == [row[0] for row in found]


_STATED = [
    ("named_struct('a', 1, 'b', CAST(NULL AS STRING))", '{"a":1}'),
    ("array(1, NULL, 3)", "[1,null,3]"),
    ("map('k', NULL)", '{"k":null}'),
    ("named_struct('s', named_struct('x', CAST(NULL AS INT)))", '{"s":{}}'),
    ("array(named_struct('x', CAST(NULL AS INT)), NULL)", "[{},null]"),
    ("array(TIMESTAMP'2020-01-01 00:00:00.000001 UTC')", '["2020-01-01T00:00:00.000001Z"]'),
    ("array(TIMESTAMP_NTZ'2020-03-29 02:30:00')", '["2020-03-29T02:30:00.000000"]'),
    ("array(X'00FF')", '["AP8="]'),
    ("array(double('NaN'), double('-Infinity'), -0.0D)", '["NaN","-Infinity",-0.0]'),
    ("map(DATE'2020-01-01', 1)", '{"2020-01-01":1}'),
    ("map(named_struct('a', 'x'), 1)", r'{"{\"a\":\"x\"}":1}'),
    ("map(TIMESTAMP'2020-01-01 00:00:00 UTC', 1)", '{"2020-01-01T00:00:00.000000Z":1}'),
    ("array(CAST(X'FF61' AS STRING))", '["\ufffda"]'),
]
if IS_SPARK_4:
    _STATED += [
        ("array('A' COLLATE UTF8_LCASE)", '["A"]'),
        ("""parse_json('{"a":[1,null]}')""", '{"a":[1,null]}'),
    ]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_json_text_is_as_the_documents_say(spark: SparkSession, zone: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    frames = [session.sql(f"SELECT {value} AS x") for value, _ in _STATED]
    found = [frame.select(json_of(F.col("x"), frame.schema["x"].dataType)).collect()[0][0] for frame in frames]
    assert found == [text for _, text in _STATED]
