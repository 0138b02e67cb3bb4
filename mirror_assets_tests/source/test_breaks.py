from __future__ import annotations

import pytest

from mirror_assets.source.actions import Metadata
from mirror_assets.source.breaks import Break, BreakKind, Needs, find_break
from mirror_assets.source.commits import Commit
from mirror_assets.source.schema import parse_schema
from mirror_assets_tests.source.handmade import Action, column, feed_metadata, schema_string

_ID, _NAME = column("id", mapped=(1, "p1")), column("name", "string", mapped=(2, "p2"))
_BEFORE = [_ID, _NAME]
_NEEDS = Needs("table-1", ("id",))


def _break(
    after: list[Action],
    operation: str = "ALTER",
    needs: Needs = _NEEDS,
    before: list[Action] | None = None,
    metadata: Metadata | None = None,
    ids_before: int | None = 2,
) -> Break | None:
    text = schema_string(*after)
    commit = Commit(9, 0, operation, changes_data=False, column_id_before=ids_before)
    old = parse_schema(schema_string(*(before or _BEFORE)))
    return find_break(old, commit, metadata or feed_metadata(text), parse_schema(text), needs)


@pytest.mark.parametrize(
    ("after", "operation", "kind", "words"),
    [
        ([_ID, column("title", "string", mapped=(2, "p2"))], "RENAME COLUMN", BreakKind.RENAMED_COLUMN, "from name to"),
        (
            [_ID, column("name", "binary", mapped=(2, "p2"))],
            "CHANGE COLUMN",
            BreakKind.CHANGED_TYPE,
            "string to binary",
        ),
        ([_ID, column("name", "binary", mapped=(2, "p2"))], "WRITE", BreakKind.CHANGED_TYPE, "`name`"),
        ([_ID], "DROP COLUMNS", BreakKind.DROPPED_COLUMN, "`name` was dropped"),
        ([_NAME], "DROP COLUMNS", BreakKind.KEY_CHANGED, "`id` was dropped"),
        ([column("key", mapped=(1, "p1")), _NAME], "RENAME COLUMN", BreakKind.KEY_CHANGED, "from id to key"),
        ([column("id", "integer", mapped=(1, "p1")), _NAME], "CHANGE COLUMN", BreakKind.KEY_CHANGED, "bigint to int"),
        ([_ID], "WRITE", BreakKind.REPLACED, "`name` was dropped"),
        ([_ID], "CREATE OR REPLACE TABLE AS SELECT", BreakKind.REPLACED, "`name` was dropped"),
        ([_ID], "RESTORE", BreakKind.RESTORED_SCHEMA, "`name` was dropped"),
    ],
)
def test_a_schema_that_the_mirror_cannot_follow(
    after: list[Action], operation: str, kind: BreakKind, words: str
) -> None:
    found = _break(after, operation)
    assert found is not None
    assert (found.version, found.kind) == (9, kind)
    assert words in found.message
    assert f"version 9 ({operation})" in found.message


@pytest.mark.parametrize("operation", ["ALTER", "WRITE", "RESTORE", "REPLACE TABLE AS SELECT"])
def test_a_schema_that_stays_is_no_break(operation: str) -> None:
    assert _break(_BEFORE, operation) is None
    assert _break([column("id", mapped=(1, "p1"), metadata={"comment": "x"}), _NAME], operation) is None
    assert _break([_NAME, _ID], operation) is None


@pytest.mark.parametrize("operation", ["ADD COLUMNS", "WRITE", "MERGE", "CREATE OR REPLACE TABLE AS SELECT"])
def test_a_new_column_is_no_break(operation: str) -> None:
    assert _break([*_BEFORE, column("new", mapped=(3, "p3"))], operation) is None


@pytest.mark.parametrize("operation", ["RESTORE", "", "ADD COLUMNS"])
@pytest.mark.parametrize("ids_before", [3, None])
def test_a_column_that_untouched_files_may_have_values_of_is_a_break(operation: str, ids_before: int | None) -> None:
    """RESTORE brings back the id that the column had; a new column has a higher id than any before it."""
    old = column("old", mapped=(3, "p3"))
    found = _break([*_BEFORE, old], operation, ids_before=ids_before)
    assert found is not None
    assert "`old` was added, with the values that older files have" in found.message
    member = column("s", {"type": "struct", "fields": [column("x", mapped=(5, "p5")), old]}, mapped=(4, "p4"))
    struct = column("s", {"type": "struct", "fields": [column("x", mapped=(5, "p5"))]}, mapped=(4, "p4"))
    found = _break([_ID, member], operation, before=[_ID, struct], ids_before=5)
    assert found is not None
    assert "`s.old` was added" in found.message


def test_a_restore_that_adds_a_column_of_a_new_id_is_no_break() -> None:
    assert _break([*_BEFORE, column("new", mapped=(3, "p3"))], "RESTORE") is None


def test_without_column_mapping_only_the_loss_of_the_ids_makes_an_added_column_a_break() -> None:
    plain = [column("id"), column("name", "string")]
    assert _break([*plain, column("new")], "RESTORE", before=plain, ids_before=None) is None
    lost = _break([*plain, column("old")], "RESTORE")
    assert lost is not None
    assert lost.kind is BreakKind.RESTORED_SCHEMA


def test_properties_of_the_table() -> None:
    text = schema_string(*_BEFORE)
    other = _break(_BEFORE, metadata=feed_metadata(text, "table-2", feed="false"))
    assert other is not None
    assert other.kind is BreakKind.TABLE_REPLACED
    assert "table-2" in other.message
    assert "table-1" in other.message
    assert _break(_BEFORE, metadata=feed_metadata(text, feed="false")) is None


def test_a_mirror_by_row_tracking_rests_on_row_tracking_only() -> None:
    text, needs = schema_string(*_BEFORE), Needs("table-1", ("id",), row_tracking=True)
    assert _break(_BEFORE, needs=needs, metadata=feed_metadata(text, feed="false", row_tracking="true")) is None
    off = _break(_BEFORE, needs=needs, metadata=feed_metadata(text, row_tracking="false"))
    assert off is not None
    assert off.kind is BreakKind.ROW_TRACKING_DISABLED


def test_columns_that_are_not_mirrored_break_nothing() -> None:
    extra = column("extra", "integer", mapped=(3, "p3"))
    needs = Needs("table-1", ("id",), ("name",))
    assert _break(_BEFORE, "DROP COLUMNS", needs, before=[*_BEFORE, extra]) is None
    assert _break([*_BEFORE, extra], "RESTORE", needs) is None
    assert _break([_ID, extra], "DROP COLUMNS", needs, before=[*_BEFORE, extra]) is not None
    assert _break([_NAME, extra], "DROP COLUMNS", needs, before=[*_BEFORE, extra]) is not None


def test_the_worst_of_several_reasons_names_the_break() -> None:
    before = [*_BEFORE, column("old", mapped=(3, "p3"))]
    found = _break([_ID, column("title", "string", mapped=(2, "p2"))], before=before)
    assert found is not None
    assert found.kind is BreakKind.RENAMED_COLUMN
    assert "`old` was dropped" in found.message
