"""Columns that Direct Lake can't load, by their types."""

from __future__ import annotations

from mirror_assets.source.schema import parse_schema
from mirror_assets.verify.direct_lake_types import unloadable_columns
from mirror_assets_tests.source.handmade import column, schema_string


def test_complex_and_binary_columns_are_found() -> None:
    array = {"type": "array", "elementType": "long", "containsNull": True}
    schema = schema_string(column("id"), column("list", array), column("guid", "binary"), column("either", "variant"))
    found = {one.column: one.message for one in unloadable_columns(parse_schema(schema).fields)}
    assert {name: message.split(":")[0] for name, message in found.items()} == {
        "list": "is complex",
        "guid": "is binary, as a GUID may be",
        "either": "is complex",
    }
