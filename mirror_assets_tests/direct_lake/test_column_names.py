"""Parquet columns and the table's columns: by physical names, whatever these look like."""

from __future__ import annotations

import pytest

from mirror_assets.direct_lake.columns import ColumnNames
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.actions import Metadata
from mirror_assets_tests.source.handmade import Action, column, schema_string


def _names(*columns: Action, **configuration: str) -> ColumnNames:
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    return ColumnNames.of(Metadata("t", schema_string(*columns), properties))


def _struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


def test_columns_without_mapping_are_called_alike() -> None:
    names = _names(column("id"), column("a.b"), column("a", _struct(column("b"))))
    assert names.column("id") == "id"
    assert names.column("a.b") == "a.b"
    assert _names(column("a", _struct(column("b")))).column("a.b") == "a"
    assert names.column("ID") is None


def test_mapped_columns_are_found_by_their_physical_names() -> None:
    names = _names(column("id", mapped=(1, "col-1")), column("col-1", mapped=(2, "col-2")))
    assert (names.column("col-1"), names.column("col-2")) == ("id", "col-1")
    assert names.is_dropped("id")


def test_a_member_of_a_struct_can_be_dropped_alone() -> None:
    inner = _struct(column("x", mapped=(3, "col-x")))
    names = _names(column("s", inner, mapped=(2, "col-s")))
    assert not names.is_dropped("col-s.col-x")
    assert names.is_dropped("col-s.col-y")


@pytest.mark.parametrize("path", ["l.list.element.x", "l.bag.array", "m.key_value.value", "v.metadata"])
def test_inside_of_lists_maps_and_variants_writers_name_things_as_they_like(path: str) -> None:
    array = {"type": "array", "elementType": "long", "containsNull": True}
    mapping = {"type": "map", "keyType": "long", "valueType": "long", "valueContainsNull": True}
    names = _names(column("l", array), column("m", mapping), column("v", "variant"))
    assert not names.is_dropped(path)


def test_row_ids_are_deltas_own() -> None:
    names = _names(
        column("id"),
        **{
            "rowTracking.materializedRowIdColumnName": "_row-id-col-1",
            "rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
        },
    )
    assert names.column("_row-id-col-1") is None
    assert not names.is_dropped("_row-id-col-1")
    assert not names.is_dropped("_row-commit-version-col-1")
    assert names.is_dropped("_row-id-col-2")


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(SettingError, match=r"no column `ID`.*id, name") as error:
        _names(column("id"), column("name")).require(["name", "ID"])
    assert error.value.code is ErrorCode.COLUMN_UNKNOWN
