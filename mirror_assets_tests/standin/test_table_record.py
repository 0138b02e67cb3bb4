"""Status files: written in one step, refused when they are not ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode
from mirror_assets.monitoring import TableState
from mirror_assets.standin.errors import MirrorUnreadable
from mirror_assets.standin.table_record import Evidence, ReplicatorFailure, TableRecord, read_record, write_json
from mirror_assets_tests.standin.publisher import Publisher, pairs

_RECORD = TableRecord(
    name="s.t",
    identity="1-2-3",
    state=TableState.FAILED,
    failure=ReplicatorFailure(code="file_empty", message="x", evidence=(Evidence(path="p", etag="e"),)),
    key_columns=("k",),
)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s.t.json"
    write_json(path, _RECORD)
    assert read_record(path) == _RECORD
    assert [item.name for item in path.parent.iterdir()] == ["s.t.json"]
    assert read_record(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    "change",
    [
        {"state": "Fine"},
        {"name": "_t"},
        {"applied_number": -1},
        {"applied_number": "1"},
        {"format": 2},
        {"more": 1},
        {"identity": None},
        {"last_sync": "2026-01-01T00:00:00"},
    ],
)
def test_other_content_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({**json.loads(_RECORD.model_dump_json()), **change}))
    with pytest.raises(MirrorUnreadable) as caught:
        read_record(path)
    assert caught.value.code is ErrorCode.MIRROR_UNREADABLE
    assert next(iter(change)) in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_broken_status_file_is_reported_as_a_failed_table(publisher: Publisher, text: str) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    path = publisher.mirror / "_status" / "t.json"
    path.write_text(text)
    status = publisher.poll()
    assert (status.state, status.error_code) == (TableState.FAILED, "mirror_unreadable")
    assert str(path) in (status.message or "")
    path.unlink()
    assert publisher.poll().applied_number == 1


def test_files_that_are_no_tables_status_are_left_alone(publisher: Publisher) -> None:
    publisher.declare()
    publisher.poll()
    status = publisher.mirror / "_status"
    (status / "a.b.c.json").write_text("{}")
    (status / "copy.json").write_bytes((status / "t.json").read_bytes())
    assert [str(table.name) for table in publisher.replicator().poll()] == ["t"]


def test_writing_that_fails_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    write_json(path, _RECORD)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, _RECORD.model_copy(update={"applied_number": 7}))
    assert read_record(path) == _RECORD
    assert [item.name for item in tmp_path.iterdir()] == ["t.json"]
