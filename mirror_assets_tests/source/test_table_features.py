"""Tables with each feature that is refused, and metadata that can't be read: both readers of the log refuse them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.source.commits import CommitRange
from mirror_assets.source.errors import SOURCE_UNSUPPORTED
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_changes, scan_version
from mirror_assets.source.table_features import FEATURES, TableFeature, Treatment
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.pages import DOCS, table
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)

Read = Callable[[Path], object]

_READERS = pytest.mark.parametrize(
    "read",
    [
        lambda path: DeltaLog(str(path)).state(),
        lambda path: scan_version(DeltaLog(str(path)), 0),
        lambda path: scan_changes(DeltaLog(str(path)), CommitRange(0, 0)),
    ],
    ids=["state", "version", "changes"],
)
_REFUSED = [feature for feature in FEATURES if feature.treatment is Treatment.REFUSED]


def _table(
    path: Path, schema: str = schema_string(column("id")), protocol: Action = PROTOCOL, mode: str = "none"
) -> Path:
    metadata = metadata_action(schema, **{"delta.columnMapping.mode": mode})
    write_commit(path, 0, [info(), protocol, metadata, file_action("add")])
    return path


@_READERS
@pytest.mark.parametrize("feature", [one for one in _REFUSED if one.by_readers], ids=lambda one: one.name)
@pytest.mark.parametrize("suffix", ["", "-preview"])
def test_a_readers_feature_is_refused_with_its_reason(
    tmp_path: Path, read: Read, feature: TableFeature, suffix: str
) -> None:
    name = f"{feature.name}{suffix}"
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [name], "writerFeatures": [name]}
    with raises_row(SOURCE_UNSUPPORTED, match=re.escape(f"uses the table feature `{name}` ({feature.reason})")):
        read(_table(tmp_path, protocol={"protocol": protocol}))


@pytest.mark.parametrize("feature", [one for one in _REFUSED if not one.by_readers], ids=lambda one: one.name)
def test_a_writers_feature_is_refused_while_later_commits_are_elsewhere(tmp_path: Path, feature: TableFeature) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [f"{feature.name}-preview"]}
    log = DeltaLog(str(_table(tmp_path, protocol={"protocol": protocol})))
    assert log.state().version == 0
    write_commit(tmp_path, 1, [info(), metadata_action(schema_string(column("id")), **{feature.moves_commits: "{}"})])
    with raises_row(SOURCE_UNSUPPORTED, match=re.escape(f"`{feature.name}-preview` ({feature.reason})")):
        log.state()


@_READERS
def test_an_unknown_mode_of_column_mapping_is_refused(tmp_path: Path, read: Read) -> None:
    with raises_row(SOURCE_UNSUPPORTED, match="uses column mapping in the mode `ids`"):
        read(_table(tmp_path, mode="ids"))


def _changed(before: str, after: str, kind: object = None, path: str = "") -> str:
    change = {"fromType": before, "toType": after} | ({"fieldPath": path} if path else {})
    return schema_string(column("id"), column("c", kind or after, metadata={"delta.typeChanges": [change]}))


@_READERS
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("integer", "short"),
        ("integer", "date"),
        ("integer", "float"),
        ("long", "double"),
        ("integer", "decimal(9,0)"),
        ("integer", "decimal(11,2)"),
        ("long", "decimal(19,0)"),
        ("decimal(9,2)", "decimal(10,4)"),
        ("decimal(9,2)", "decimal(9,1)"),
        ("date", "timestamp"),
        ("timestamp_ntz", "timestamp"),
    ],
)
def test_a_change_of_a_type_that_the_protocol_lacks_is_refused(
    tmp_path: Path, read: Read, before: str, after: str
) -> None:
    """Spark reads 70000 of an integer's file as the short 4464, and 17 as the date 1970-01-18."""
    with raises_row(SOURCE_UNSUPPORTED, match=re.escape(f"uses a change of its column `c` from {before} to {after}")):
        read(_table(tmp_path, _changed(before, after)))


def test_a_change_of_a_members_type_is_noticed(tmp_path: Path) -> None:
    array = {"type": "array", "elementType": "date", "containsNull": True}
    inner = column("inner", array, metadata={"delta.typeChanges": [{"fromType": "integer", "toType": "date"}]})
    struct = {"type": "struct", "fields": [inner]}
    nested = {"type": "map", "keyType": "string", "valueType": struct, "valueContainsNull": True}
    with raises_row(SOURCE_UNSUPPORTED, match="`inner` from integer to date"):
        DeltaLog(str(_table(tmp_path, schema_string(column("id"), column("outer", nested))))).state()


@pytest.mark.parametrize(
    ("before", "after"),
    [("byte", "short"), ("decimal(9, 2)", "decimal(11, 4)"), ("varchar(3)", "string"), ("date", "date")],
)
def test_other_changes_of_types_are_no_reason(tmp_path: Path, before: str, after: str) -> None:
    assert DeltaLog(str(_table(tmp_path, _changed(before, after)))).state().version == 0


def test_the_page_has_the_features_of_the_code() -> None:
    rows = table(DOCS / "table-features.md", "The table")
    told = [(name.strip("`"), kind, verdict, why) for name, kind, verdict, why in rows]
    kinds = {True: "readers and writers", False: "writers"}
    assert told == [(one.name, kinds[one.by_readers], one.treatment.value, one.reason) for one in FEATURES]
    assert len({one.name for one in FEATURES}) == len(FEATURES)
