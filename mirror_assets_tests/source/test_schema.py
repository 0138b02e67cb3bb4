from __future__ import annotations

import json
import re

import pytest

from mirror_assets.column_types import Family
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.errors import COLUMN_UNFIT
from mirror_assets.source.schema import Field, canonical, landing_type, parse_schema
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.source.handmade import column, schema_string

_LIST_OF_INT = {"type": "array", "elementType": "integer", "containsNull": True}
_POINT = {"type": "struct", "fields": [column("x", "integer"), column("y", _LIST_OF_INT)]}
_MAP = {"type": "map", "keyType": "string", "valueType": _POINT, "valueContainsNull": False}


def _only(column_type: object, **metadata: object) -> Field:
    (field,) = parse_schema(schema_string(column("c", column_type, metadata=metadata))).fields
    return field


@pytest.mark.parametrize(
    ("delta_type", "spark_type"),
    [
        (_POINT, "struct<x:int,y:array<int>>"),
        (_LIST_OF_INT, "array<int>"),
        (_MAP, "map<string,struct<x:int,y:array<int>>>"),
        ("variant", "variant"),
    ],
)
def test_a_nested_type_lands_as_text(delta_type: object, spark_type: str) -> None:
    field = _only(delta_type)
    assert (field.type, landing_type(field, "t"), field.kind.family) == (spark_type, "string", Family.NESTED)


def test_a_limited_or_collated_string_lands_as_string() -> None:
    field = _only("string", __CHAR_VARCHAR_TYPE_STRING="varchar(9)")
    assert (field.type, landing_type(field, "t"), field.kind.family) == ("varchar(9)", "string", Family.TEXT)
    assert landing_type(_only("string collate UTF8_LCASE"), "t") == "string"


@pytest.mark.parametrize("unfit", ["void", "interval year", "time(6)", "timestamp(9)", "geometry(4326)", "new_type"])
def test_a_type_without_a_counterpart_is_refused_by_name(unfit: str) -> None:
    with raises_row(COLUMN_UNFIT, match=rf"^t: column `c` has type {re.escape(unfit)}, .* cast it"):
        landing_type(_only(unfit), "t")


def test_a_column_mapping_and_nullability_are_kept() -> None:
    schema = parse_schema(schema_string(column("c", nullable=False, mapped=(7, "col-7"))))
    assert schema.field("c") == Field("c", "bigint", nullable=False, field_id=7, physical_name="col-7")
    assert schema.field("C") is None


def test_what_says_nothing_of_the_rows_is_no_part_of_the_schema() -> None:
    plain = schema_string(column("id"))
    described = schema_string(column("id", metadata={"comment": "key", "delta.identity.highWaterMark": 9}))
    assert parse_schema(plain) == parse_schema(described)
    assert parse_schema(plain) != parse_schema(schema_string(column("id", nullable=False)))


@pytest.mark.parametrize("text", ["", "{}", '{"type":"struct"}', '{"type":"struct","fields":[{"name":"a","type":{}}]}'])
def test_a_broken_schema_is_refused(text: str) -> None:
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="can't be parsed"):
        parse_schema(text)


def test_canonical_order_of_keys() -> None:
    text = schema_string(column("b"), column("a"))
    shuffled = json.dumps(json.loads(text), sort_keys=False, indent=3)
    assert canonical(text) == canonical(shuffled)
    assert [field.name for field in parse_schema(canonical(text)).fields] == ["b", "a"]
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="can't be parsed"):
        canonical("{")
