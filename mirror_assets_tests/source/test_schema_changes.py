from __future__ import annotations

import pytest

from mirror_assets.source.schema import SchemaChange, SchemaChangeKind, compare_schemas, parse_schema
from mirror_assets_tests.source.handmade import Action, column, schema_string

K = SchemaChangeKind


def _struct(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


def _list(element: object, *, contains_null: bool = True) -> Action:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def _changes(before: list[Action], after: list[Action]) -> tuple[SchemaChange, ...]:
    return compare_schemas(parse_schema(schema_string(*before)), parse_schema(schema_string(*after)))


def _kinds(before: list[Action], after: list[Action]) -> list[tuple[SchemaChangeKind, str]]:
    return [(change.kind, change.path) for change in _changes(before, after)]


_A, _B = column("a"), column("b", "string")


def test_equal_schemas_have_no_differences() -> None:
    assert _kinds([_A, column("s", _struct(_A, _B))], [_A, column("s", _struct(_A, _B))]) == []
    assert _kinds([_A], [column("a", metadata={"comment": "new"})]) == []


@pytest.mark.parametrize(
    ("before", "after", "kind", "path"),
    [
        ([_A], [_A, _B], K.ADDED, "b"),
        ([column("s", _struct(_A))], [column("s", _struct(_A, _B))], K.ADDED, "s.b"),
        ([column("s", _list(_struct(_A)))], [column("s", _list(_struct(_A, _B)))], K.ADDED, "s.element.b"),
        ([column("a", nullable=False)], [_A], K.NULLABILITY, "a"),
        ([_A], [column("a", nullable=False)], K.NULLABILITY, "a"),
        ([column("s", _list("long", contains_null=False))], [column("s", _list("long"))], K.NULLABILITY, "s.element"),
        ([_B], [column("b", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})], K.RESIZED, "b"),
        ([column("s", _list("short"))], [column("s", _list("long"))], K.RESIZED, "s.element"),
        ([column("s", _list("decimal(4,2)"))], [column("s", _list("decimal(9,2)"))], K.RESIZED, "s.element"),
        # These break the mirror.
        ([_A, _B], [_A], K.DROPPED, "b"),
        ([column("s", _struct(_A, _B))], [column("s", _struct(_A))], K.DROPPED, "s.b"),
        ([column("a", "integer")], [_A], K.RETYPED, "a"),
        ([column("d", "decimal(4,2)")], [column("d", "decimal(9,2)")], K.RETYPED, "d"),
        ([column("s", _list("integer"))], [column("s", _list("double"))], K.RETYPED, "s.element"),
        ([column("s", _list("decimal(9,2)"))], [column("s", _list("decimal(9,3)"))], K.RETYPED, "s.element"),
        ([column("s", _list("string"))], [column("s", "string")], K.RETYPED, "s"),
        ([column("s", _struct(_A))], [column("s", _list("long"))], K.RETYPED, "s"),
        ([column("v", "variant")], [column("v", "string")], K.RETYPED, "v"),
        ([_A], [column("A")], K.RENAMED, "a"),
        ([column("a", mapped=(1, "x"))], [column("z", mapped=(1, "x"))], K.RENAMED, "a"),
    ],
)
def test_a_difference_is_named_and_breaks_the_mirror_or_not(
    before: list[Action], after: list[Action], kind: SchemaChangeKind, path: str
) -> None:
    (change,) = _changes(before, after)
    is_followed = kind in (K.ADDED, K.NULLABILITY, K.RESIZED)
    assert (change.kind, change.path, change.is_breaking) == (kind, path, not is_followed)


def test_a_nested_member_is_renamed_by_its_id() -> None:
    before = [column("s", _struct(column("a", mapped=(2, "x"))), mapped=(1, "s"))]
    after = [column("s", _struct(column("z", mapped=(2, "x"))), mapped=(1, "s"))]
    (change,) = _changes(before, after)
    assert (change.kind, change.column, change.path) == (K.RENAMED, "s", "s.a")
    assert str(change) == "column `s.a` was renamed from a to z"


@pytest.mark.parametrize("mapped", [(2, "x"), (1, "y")])
def test_a_column_dropped_and_added_again_is_not_the_same(mapped: tuple[int, str]) -> None:
    assert _kinds([column("a", mapped=(1, "x"))], [column("a", mapped=mapped)]) == [(K.DROPPED, "a"), (K.ADDED, "a")]


def test_switching_column_mapping_on_changes_nothing() -> None:
    assert _kinds([_A, _B], [column("a", mapped=(1, "a")), column("b", "string", mapped=(2, "b"))]) == []


def test_an_unmapped_rename_is_a_drop_and_an_addition() -> None:
    assert _kinds([_A], [column("z")]) == [(K.DROPPED, "a"), (K.ADDED, "z")]


def test_order_alone_is_harmless() -> None:
    changes = _changes([_A, _B, column("c")], [_B, _A, column("c")])
    assert {(change.kind, change.is_breaking) for change in changes} == {(K.MOVED, False)}
    assert _kinds([_A, _B], [_A, column("n"), _B]) == [(K.ADDED, "n")]


def test_another_order_in_a_nested_column_is_breaking() -> None:
    """It lands as JSON text, whose members are in that order."""
    before, after = (column("s", {"type": "struct", "fields": fields}) for fields in ([_A, _B], [_B, _A]))
    assert {(change.kind, change.is_breaking) for change in _changes([before], [after])} == {(K.MOVED, True)}
