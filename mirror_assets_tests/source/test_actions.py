from __future__ import annotations

import json

import pytest

from mirror_assets.source.actions import Actions, CommitInfo, Protocol
from mirror_assets.source.log_paths import TablePaths
from mirror_assets.source.parsing import InvalidAction, deleted_rows, parse_actions, parse_info
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
        info("UPDATE"),
        file_action("add", "a", size=5, records=4, deleted=1),
        file_action("remove", "r", records=None),
        file_action("cdc", "c", data=False),
    )
    assert [(a.path, a.bytes, a.rows, a.hidden_rows) for a in file.added] == [("a", 5, 4, 1)]
    assert [(a.path, a.rows) for a in file.removed] == [("r", None)]
    assert [a.path for a in file.change_files] == ["c"]
    assert file.info.operation == "UPDATE"


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
    assert [f.partition for f in (added, removed, changed)] == [{"p": "1", "q": ""}] * 3


def test_a_remove_may_leave_out_its_partition_values() -> None:
    file = _one_of_each()
    assert (file.added[0].partition, file.removed[0].partition, file.change_files[0].partition) == ({}, None, {})


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
        ("hello", None),
        ('{"numRecords":12,"minValues":{"id":2', 12),
        ('{"numRecords":12', None),
        ('{"minValues":{},"numRecords":12', None),
        ('{"numRecords":"12"}', None),
        ('{"numRecords":12.0}', None),
        ('{"numRecords":1e30}', None),
        ('{"numRecords":-1}', None),
        ('{"numRecords":NaN}', None),
        ('{"numRecords":Infinity}', None),
        ('{"numRecords":true}', None),
        ('{"numRecords":12345678901234567890}', None),
        ('{"numRecords":12,"maxValues":{"id":Infinity}}', 12),
        ("null", None),
        ("[]", None),
        ("5", None),
        (5, None),
        ({"numRecords": 12}, 12),
    ],
)
def test_the_number_of_records_is_not_taken_from_a_column_of_that_name(stats: object, records: int | None) -> None:
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
    ("line", "message"),
    [
        ("{", "line 2: '{' is not JSON"),
        ("[]", "line 2: '\\[\\]' is not an action"),
        ('{"add":{"size":1}}', "line 2: the field `path` is missing"),
        ('{"remove":{"path":null}}', "line 2: the field `path` is missing"),
        ('{"add":"a"}', "line 2: `add` is not an action"),
        ('{"add":{"path":"a","dataChange":"perhaps"}}', "`dataChange` is neither true nor false"),
        ('{"add":{"path":"a","partitionValues":"x"}}', "`partitionValues` is no object"),
        ('{"add":{"path":"a","partitionValues":{"p":[1]}}}', "the partition value of `p` is no text"),
        ('{"add":{"path":"a","deletionVector":{"pathOrInlineDv":"x"}}}', "`storageType` is missing"),
        ('{"metaData":{"schemaString":"{}","partitionColumns":[]}}', "`id` is missing"),
        ('{"metaData":{"id":"t","schemaString":"{}"}}', "`partitionColumns` is missing"),
        ('{"protocol":{"minWriterVersion":2}}', "`minReaderVersion` is missing"),
        ('{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}', "reader version 3 requires the field"),
        ('{"protocol":{"minReaderVersion":3,"readerFeatures":"deletionVectors"}}', "`readerFeatures` is no list"),
    ],
)
def test_a_file_without_what_the_protocol_requires_is_refused_with_line_and_field(line: str, message: str) -> None:
    with pytest.raises(InvalidAction, match=message):
        parse_actions(f'{{"commitInfo":{{}}}}\n{line}\n'.encode(), _HERE)


@pytest.mark.parametrize(
    "commit_info",
    [
        "null",
        '"x"',
        "[]",
        "{}",
        '{"operation":null,"operationMetrics":null,"tags":null,"timestamp":null}',
        '{"operation":{"name":"x"},"operationMetrics":[1],"operationParameters":[1],"tags":"x","timestamp":"soon"}',
        '{"operation":5,"operationMetrics":{"a":{"b":1.5},"c":null,"d":true},"tags":[1],"inCommitTimestamp":"x"}',
        '{"timestamp":1e300}',
        f'{{"timestamp":{10**30}}}',
    ],
)
def test_a_commit_info_of_any_form_stops_nothing(commit_info: str) -> None:
    data = f'{{"commitInfo":{commit_info}}}\n{{"add":{{"path":"a","size":1,"dataChange":true}}}}\n'.encode()
    found = parse_actions(data, _HERE)
    assert ([file.path for file in found.added], found.info) == (["a"], CommitInfo())
    assert parse_info(data) == CommitInfo()


@pytest.mark.parametrize("text", [17, 17.0, "17"])
def test_numbers_are_read_as_jackson_reads_them(text: object) -> None:
    action: Action = {"path": "a", "size": text, "modificationTime": text, "baseRowId": text, "dataChange": True}
    file = _parse({"add": action}).added[0]
    assert (file.bytes, file.modified_ms, file.base_row_id) == (17, 17, 17)


@pytest.mark.parametrize("text", [None, "x", True, [1], float("inf")])
def test_sizes_and_times_that_are_no_numbers_are_unknown(text: object) -> None:
    action: Action = {"path": "a", "size": text, "modificationTime": text, "deletionTimestamp": text}
    added, removed = _parse({"add": action}).added[0], _parse({"remove": action}).removed[0]
    assert (added.bytes, added.modified_ms, removed.bytes, removed.deleted_ms) == (0, 0, None, 0)


@pytest.mark.parametrize(
    ("value", "added", "removed"),
    [
        (None, False, True),
        ("true", True, True),
        ("FALSE", False, False),
        ("", False, False),
        (1, True, True),
        (0, False, False),
    ],
)
def test_data_change_is_read_as_delta_on_spark_reads_it(value: object, *, added: bool, removed: bool) -> None:
    """Without it, an add changes no data and a remove does (tried with Delta 4.4)."""
    action: Action = {"path": "a", "dataChange": value}
    assert _parse({"add": action}).added[0].data_change is added
    assert _parse({"remove": action}).removed[0].data_change is removed
    if value is None:
        assert _parse({"add": {"path": "a"}}).added[0].data_change is added
        assert _parse({"remove": {"path": "a"}}).removed[0].data_change is removed


_ADD = '{"add":{"path":"a","size":1,"dataChange":true}}'


@pytest.mark.parametrize(
    "data",
    [
        f"\ufeff{_ADD}\n",
        f'{{"commitInfo":null}}\r\n{_ADD}\r\n\r\n',
        f'{{"commitInfo":{{}}}}\r{_ADD}\r',
        f"\n   \n\t\n{_ADD}",
        f'{{}}\n{{"foo":5}}\n{{"bar":null}}\n{{"add":null}}\n{{"txn":"x"}}\n{_ADD}',
        f'{{"add":{_ADD[7:-1]},"remove":null,"cdc":null,"metaData":null,"protocol":null,"commitInfo":null}}',
        '{"add":{"path":"a","size":1,"dataChange":true,"tags":"x","new":{"a":[1]},"clusteringProvider":null}}',
    ],
)
def test_lines_of_any_form_that_spark_reads(data: str) -> None:
    found = parse_actions(data.encode(), _HERE)
    assert [(file.path, file.data_change, dict(file.tags)) for file in found.added] == [("a", True, {})]
    assert (found.removed, found.change_files, found.metadata, found.protocol) == ((), (), None, None)


def test_a_line_with_two_actions_has_the_one_that_spark_reads() -> None:
    found = _parse({"remove": {"path": "r"}, "add": {"path": "a"}})
    assert ([file.path for file in found.added], found.removed) == (["a"], ())


def test_a_separator_of_lines_within_a_text_ends_no_line() -> None:
    data = json.dumps({"add": {"path": "a", "tags": {"t": "x\u2028y\u0085z"}}}, ensure_ascii=False).encode()
    assert parse_actions(data, _HERE).added[0].tags == {"t": "x\u2028y\u0085z"}


def test_partition_values_and_properties_of_other_types_are_text() -> None:
    partition: dict[str, object] = {"a": 1, "b": True, "c": None, "d": ""}
    assert _parse({"add": {"path": "a", "partitionValues": partition}}).added[0].partition == {
        "a": "1",
        "b": "true",
        "c": None,
        "d": "",
    }
    action = metadata_action(schema_string())
    raw = action["metaData"]
    assert isinstance(raw, dict)
    odd = {**raw, "configuration": {"delta.enableChangeDataFeed": True, "a": 5, "b": None}, "schemaString": {}}
    odd |= {"schemaString": json.loads(schema_string(column("id"))), "id": 5}
    metadata = _parse({"metaData": odd}).metadata
    assert metadata is not None
    assert (metadata.table_id, metadata.columns, metadata.feed_enabled) == ("5", ("id",), True)
    assert metadata.configuration["a"] == "5"


def test_a_protocol_without_optional_fields() -> None:
    protocol = _parse({"protocol": {"minReaderVersion": 1, "readerFeatures": None}}).protocol
    assert protocol == Protocol(1, 0)


@pytest.mark.parametrize(
    "checksum", [None, b"", b'{"tableSize', b"[]", b"null", b'{"numDeletedRecordsOpt":"x"}', b"\xff"]
)
def test_a_checksum_file_of_any_form_stops_nothing(checksum: bytes | None) -> None:
    assert deleted_rows(checksum) is None
    assert deleted_rows(b'{"numDeletedRecordsOpt":7}') == 7
