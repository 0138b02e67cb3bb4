"""The table of column types agrees with the one of `verify`, with the documents and with the types that are tested."""

from __future__ import annotations

import pytest

from mirror_assets.column_types import COLUMN_TYPES, LAND_AS_TEXT, ColumnType, Family, NtzLanding, column_type
from mirror_assets.source.schema import landing_type, parse_schema
from mirror_assets.verify.landed_values import LANDED_TYPES, arrow_type
from mirror_assets_tests.pages import DOCS, codes, table
from mirror_assets_tests.source.handmade import column, schema_string
from mirror_assets_tests.types.cases import CASES

_BARE = (Family.WHOLE, Family.DECIMAL, Family.FLOAT, Family.BOOLEAN)
_DELTAS = {
    "decimal": "decimal(9,2)",
    "struct": {"type": "struct", "fields": []},
    "array": {"type": "array", "elementType": "long", "containsNull": True},
    "map": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
}


def _plain(kind: ColumnType) -> str:
    return kind.name.rstrip("(<")


def _lands_as(kind: ColumnType) -> str:
    if kind.family is Family.REFUSED:
        return "refused"
    return "string" if kind.family in LAND_AS_TEXT else _plain(kind)


@pytest.mark.parametrize("name", LANDED_TYPES)
def test_a_type_lands_as_verify_expects(name: str) -> None:
    (field,) = parse_schema(schema_string(column("c", _DELTAS.get(name, name)))).fields
    landed, lands_as, kind = LANDED_TYPES[name], landing_type(field, "t"), field.kind
    assert lands_as.split("(")[0] == landed.landing == _lands_as(kind)
    assert (kind.arrow or landed.arrow) == landed.arrow
    assert (landed.arrow or arrow_type(lands_as)) == arrow_type(lands_as) is not None
    assert (kind.family is Family.FLOAT) == landed.is_float
    assert (kind.family in _BARE) == landed.is_bare


def test_a_type_lands_as_the_page_says() -> None:
    told = {
        source.split("(")[0]: landed.strip("`").split("(")[0]
        for sources, landed, *_ in table(DOCS / "encoding.md", "Types")
        for source in codes(sources)
    }
    assert {_plain(kind): NtzLanding.UTC.landed(_lands_as(kind)) for kind in COLUMN_TYPES} == told
    # Spark reads char and varchar as string.
    landing = {kind.delta or _plain(kind) for kind in COLUMN_TYPES if kind.family is not Family.REFUSED}
    assert landing - {"char", "varchar"} == set(LANDED_TYPES)


def test_a_type_is_no_key_where_the_page_says_so() -> None:
    groups = {"floating-point": {"float", "double"}, "nested": {"struct", "array", "map"}}
    sentence = (DOCS / "encoding.md").read_text(encoding="utf-8").partition("\nKeys can't be ")[2].partition(".")[0]
    told = [groups.get(word, {word}) for word in sentence.replace(" or ", ", ").split(", ")]
    assert {_plain(kind) for kind in COLUMN_TYPES if kind.why_no_key} == set().union(*told)


def test_values_of_each_type_are_landed_by_a_test() -> None:
    landing = {kind.name for kind in COLUMN_TYPES if kind.family is not Family.REFUSED}
    assert {column_type(case.type.lower()).name for case in CASES} == landing
