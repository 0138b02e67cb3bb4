"""Tables that need more of a reader than is known here: both readers of the log refuse them, in the same words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
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

_SCHEMA = schema_string(column("id"))

Read = Callable[[Path], object]


def _state(path: Path) -> object:
    return DeltaLog(str(path)).state()


def _snapshot(path: Path) -> object:
    return DeltaLog(str(path)).snapshot()


_BOTH = pytest.mark.parametrize("read", [_state, _snapshot])


def _protocol(reader: int, features: Sequence[str], writer: int = 7) -> Action:
    actions: dict[str, object] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if reader == 3:
        actions["readerFeatures"] = list(features)
    return {"protocol": {**actions, "writerFeatures": [*features, "inCommitTimestamp"]}}


def _table(path: Path, protocol: Action) -> Path:
    write_commit(path, 0, [info(), protocol, metadata_action(_SCHEMA)])
    return path


@_BOTH
@pytest.mark.parametrize("feature", ["newFeature", "newFeature-preview"])
def test_a_reader_feature_that_is_not_known_is_refused(tmp_path: Path, read: Read, feature: str) -> None:
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match=f"uses the table feature `{feature}`"):
        read(_table(tmp_path, _protocol(3, ["deletionVectors", feature])))


@_BOTH
def test_a_reader_version_that_is_not_known_is_refused(tmp_path: Path, read: Read) -> None:
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="uses reader version 4 of Delta's protocol"):
        read(_table(tmp_path, {"protocol": {"minReaderVersion": 4, "minWriterVersion": 6}}))


@_BOTH
@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview", "catalogOwned"])
def test_a_catalogs_table_is_refused_with_the_way_out(tmp_path: Path, read: Read, feature: str) -> None:
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="name it by its catalog"):
        read(_table(tmp_path, _protocol(3, ["vacuumProtocolCheck", feature])))


@_BOTH
def test_features_that_are_known_and_those_of_writers_are_no_reason(tmp_path: Path, read: Read) -> None:
    known = ["columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview"]
    known += ["v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview", "variantShredding-preview"]
    read(_table(tmp_path / "reader", _protocol(3, known)))
    read(_table(tmp_path / "writer", _protocol(1, ["newFeature", "icebergCompatV3", "collations-preview"])))
    both: Action = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["vacuumProtocolCheck"]}
    both["writerFeatures"] = ["vacuumProtocolCheck", "concurrentIdentityColumns"]
    read(_table(tmp_path / "both", {"protocol": both}))


def test_a_type_that_is_not_known_is_refused(tmp_path: Path) -> None:
    schema = schema_string(column("place", "geometry(OGC:CRS84)"))
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata_action(schema)])
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match=r"uses a column of type `geometry\(OGC:CRS84\)`"):
        _state(tmp_path)


def test_a_table_that_was_made_without_columns_is_read_once_it_has_some(tmp_path: Path) -> None:
    """As Delta Live Tables make them."""
    without = metadata_action(schema_string())
    raw = without["metaData"]
    assert isinstance(raw, dict)
    left_out: Action = {"metaData": {name: value for name, value in raw.items() if name != "schemaString"}}
    null: Action = {"metaData": {**raw, "schemaString": None}}
    for name, metadata in {"empty": without, "left out": left_out, "null": null}.items():
        write_commit(tmp_path / name, 0, [info(), PROTOCOL, metadata])
        with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="has no columns yet"):
            _state(tmp_path / name)
        _snapshot(tmp_path / name)
        write_commit(tmp_path / name, 1, [info(), PROTOCOL, metadata_action(_SCHEMA), file_action("add")])
        _state(tmp_path / name)
        assert [commit.version for commit in DeltaLog(str(tmp_path / name)).commits(0, 1)] == [0, 1]
        assert [len(snapshot.files) for snapshot in DeltaLog(str(tmp_path / name)).snapshots([0, 1])] == [0, 1]


def test_a_feature_that_is_not_known_is_refused_within_a_range_also(tmp_path: Path) -> None:
    """It was dropped again before the newest version, which has no sign of it."""
    _table(tmp_path, _protocol(3, ["deletionVectors"]))
    write_commit(tmp_path, 1, [info(), _protocol(3, ["deletionVectors", "newFeature"]), file_action("add")])
    write_commit(tmp_path, 2, [info(), _protocol(3, ["deletionVectors"])])
    log = DeltaLog(str(tmp_path))
    assert (log.state().version, len(log.commits(2, 2))) == (2, 1)
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, match="uses the table feature `newFeature`"):
        log.commits(1, 2)
