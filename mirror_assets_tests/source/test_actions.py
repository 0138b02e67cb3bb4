from __future__ import annotations

import json

import pytest

from mirror_assets.source.actions import Actions
from mirror_assets.source.log_paths import TablePaths
from mirror_assets.source.parsing import parse_actions, parse_info
from mirror_assets.source.schema import Schema, parse_schema
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    file_action,
    info,
    metadata_action,
    schema_string,
)

_HERE = TablePaths.of("/lake/t")


def _parse(*actions: Action) -> Actions:
    return parse_actions(_bytes(*actions), _HERE)


def _time(data: bytes) -> int | None:
    return parse_info(data).timestamp_ms


def _bytes(*actions: Action) -> bytes:
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


def test_files_by_kind_with_their_rows() -> None:
    file = _parse(
        info("UPDATE", numUpdatedRows="7", num_updated_rows=7, scanTime="1.5", auto=None),
        file_action("add", "a", size=5, records=4, deleted=1),
        file_action("remove", "r", records=None),
        file_action("cdc", "c", data=False),
    )
    assert [(a.path, a.bytes, a.rows, a.hidden_rows) for a in file.added] == [("a", 5, 4, 1)]
    assert [(a.path, a.rows) for a in file.removed] == [("r", None)]
    assert [a.path for a in file.change_files] == ["c"]
    assert file.operation == "UPDATE"
    assert dict(file.metrics) == {"numUpdatedRows": 7, "num_updated_rows": 7}


def _one_of_each(**fields: object) -> Actions:
    """An add, a remove and a cdc action with these fields."""
    kinds: tuple[Action, ...] = tuple(
        {kind: {"path": kind, "size": 1, "dataChange": True, **fields}} for kind in ("add", "remove", "cdc")
    )
    return _parse(*kinds)


def test_row_ids_and_partition_values_of_each_kind() -> None:
    file = _one_of_each(baseRowId=100, defaultRowCommitVersion=7, partitionValues={"p": "1", "q": ""})
    added, removed, changed = file.added[0], file.removed[0], file.change_files[0]
    assert [(f.base_row_id, f.row_commit_version) for f in (added, removed)] == [(100, 7)] * 2
    assert [f.partition for f in (added, removed, changed)] == [{"p": "1", "q": None}] * 3


def test_a_remove_may_leave_out_its_partition_values() -> None:
    file = _one_of_each()
    assert (file.added[0].partition, file.removed[0].partition, file.change_files[0].partition) == ({}, None, {})


def test_files_that_change_no_data_are_left_out() -> None:
    file = _parse(info("OPTIMIZE"), file_action("add", data=False), file_action("remove", "b", data=False))
    assert (file.data_added, file.data_removed) == ((), ())


def test_rewritten_rows_have_new_ids_unless_the_writer_says_that_it_kept_them() -> None:
    rewritten = file_action("add", "a", records=4, data=False)
    assert [action.path for action in _parse(info("WRITE"), rewritten).renumbered] == ["a"]
    kept: Action = {"commitInfo": {"operation": "OPTIMIZE", "tags": {"delta.rowTracking.preserved": "true"}}}
    assert _parse(kept, rewritten).renumbered == ()


@pytest.mark.parametrize(
    ("stats", "records"),
    [
        ('{"numRecords":12,"minValues":{"numRecords":3}}', 12),
        ('{"minValues":{"numRecords":3},"numRecords":12}', 12),
        ('{"minValues":{"numRecords":3}}', None),
        ("", None),
        (None, None),
    ],
)
def test_the_number_of_records_is_not_taken_from_a_column_of_that_name(stats: str | None, records: int | None) -> None:
    file = _parse({"add": {"path": "a", "size": 1, "dataChange": True, "stats": stats}})
    assert file.added[0].rows == records


def test_metadata_and_protocol() -> None:
    file = _parse(
        metadata_action(schema_string(column("id")), "t", **{"delta.enableChangeDataFeed": "TRUE"}),
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["a"], "writerFeatures": ["b"]}},
    )
    assert file.metadata is not None
    assert file.protocol is not None
    assert (file.metadata.table_id, file.metadata.feed_enabled, file.metadata.row_tracking) == ("t", True, False)
    assert file.protocol.features == {"a", "b"}
    assert _parse(PROTOCOL).metadata is None


def test_the_commits_own_time_wins_over_the_writers() -> None:
    both: Action = {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 2, "operation": "WRITE"}}
    assert (_parse(both).info.timestamp_ms, _time(_bytes(file_action("add", "commitInfo"), both))) == (2, 2)
    assert (_parse(info(timestamp=1)).info.timestamp_ms, _time(_bytes(info(timestamp=1)))) == (1, 1)
    assert (_parse(PROTOCOL).info.timestamp_ms, _time(_bytes(PROTOCOL))) == (None, None)


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"add":{"path":"a"}}', b'{"metaData":{"schemaString":"{}"}}', b'{"add":null}']
)
def test_what_delta_does_not_write_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_actions(data, _HERE)


def test_metadata_without_a_schema_has_no_columns() -> None:
    """Delta Live Tables leave it out of a table's first commit."""
    without = metadata_action(schema_string())
    raw = without["metaData"]
    assert isinstance(raw, dict)
    null, left_out = {**raw, "schemaString": None}, {name: raw[name] for name in raw if name != "schemaString"}
    for action in (null, left_out):
        metadata = _parse({"metaData": action}).metadata
        assert metadata is not None
        assert parse_schema(metadata.schema_string) == Schema(())
