"""Versions are the same from whatever files the log has of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_assets.lakes.errors import SourceUnreadable
from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import Snapshot
from mirror_assets_tests.source.columns import assert_same_files
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)
from mirror_assets_tests.source.random_lakes import histories
from mirror_assets_tests.source.rewritten import classic, compacted, in_parts, with_parsed_statistics, with_sidecars


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Nine versions of a partitioned table, a checkpoint of version 5."""
    for number in range(9):
        rows = pa.table({"id": range(number, number + 3), "p": [number % 2] * 3})
        write_deltalake(tmp_path, rows, mode="overwrite" if number % 4 == 3 else "append", partition_by=["p"])
        if number == 5:
            DeltaTable(tmp_path).create_checkpoint()
    return tmp_path


def _without_commits(table: Path, versions: range) -> DeltaLog:
    for version in versions:
        commit_file(table, version).unlink()
    return DeltaLog(str(table))


_FORMS: dict[str, Callable[[Path], object]] = {
    "classic": lambda table: classic(table, 5),
    "in parts": lambda table: in_parts(table, 5),
    "v2, JSON": lambda table: with_sidecars(table, 5, "json"),
    "v2, Parquet": lambda table: with_sidecars(table, 5, "parquet"),
    "parsed statistics": lambda table: with_parsed_statistics(table, 5),
}


@pytest.mark.parametrize("form", _FORMS)
def test_every_form_of_a_checkpoint_says_the_same(table: Path, form: str) -> None:
    whole = list(DeltaLog(str(table)).snapshots(range(5, 9)))
    _FORMS[form](table)
    log = _without_commits(table, range(6))
    assert log.versions() == (5, 6, 7, 8)
    for snapshot, other in zip(log.snapshots(range(5, 9)), whole, strict=True):
        assert_same_files(log, snapshot)
        assert (snapshot.files, snapshot.metadata, snapshot.protocol) == (other.files, other.metadata, other.protocol)
        assert [(t.path, t.deleted_ms) for t in snapshot.tombstones] == [
            (t.path, t.deleted_ms) for t in other.tombstones
        ]
    assert log.snapshot(5).timestamp_ms == log.time_ms(5)


def test_row_ids_and_partition_values_are_read_from_a_checkpoint(tmp_path: Path) -> None:
    extra = {"baseRowId": 5, "defaultRowCommitVersion": 1, "partitionValues": {"p": "1"}}
    schema = metadata_action(schema_string(column("id"), column("p")))
    schema["metaData"] = {**_object(schema["metaData"]), "partitionColumns": ["p"]}
    write_commit(tmp_path, 0, [info(), PROTOCOL, schema, _with(file_action("add", "r"), extra)])
    now = int(time.time() * 1000)
    removed = _with(file_action("remove", "r"), {**extra, "deletionTimestamp": now, "extendedFileMetadata": True})
    write_commit(tmp_path, 1, [info(), removed, _with(file_action("add", "a"), extra)])
    DeltaTable(tmp_path).create_checkpoint()
    snapshot = _without_commits(tmp_path, range(2)).snapshot(1)
    (added,), (tombstone,) = snapshot.files, snapshot.tombstones
    for file in (added, tombstone):
        assert (file.base_row_id, file.row_commit_version, file.partition) == (5, 1, {"p": "1"})


def _object(value: object) -> Action:
    assert isinstance(value, dict)
    return value


def _with(action: Action, more: Action) -> Action:
    return {kind: {**_object(fields), **more} for kind, fields in action.items()}


def test_a_checkpoint_that_lacks_a_part_is_none(table: Path) -> None:
    in_parts(table, 5)[1].unlink()
    assert DeltaLog(str(table)).versions() == tuple(range(9))
    assert _without_commits(table, range(6)).versions() == ()
    with pytest.raises(LogGap):
        DeltaLog(str(table)).snapshot()


def test_an_empty_checkpoint_is_none(table: Path) -> None:
    classic(table, 5).write_bytes(b"")
    assert _without_commits(table, range(6)).versions() == ()


def test_a_sidecar_that_is_gone_is_a_gap(table: Path) -> None:
    with_sidecars(table, 5, "json")[1].unlink()
    with pytest.raises(LogGap) as caught:
        _without_commits(table, range(6)).snapshot(6)
    assert caught.value.version == 5


def test_sidecars_may_be_named_by_absolute_paths(table: Path) -> None:
    """They lie in one folder whatever their paths say (Delta's protocol, "Sidecar Files")."""
    whole = DeltaLog(str(table)).snapshot(5)
    sidecar, _ = with_sidecars(table, 5, "json")
    (top,) = (table / "_delta_log").glob("*.checkpoint.*.json")
    top.write_text(top.read_text().replace(f'"{sidecar.name}"', f'"{sidecar.as_uri()}"'))
    assert _without_commits(table, range(6)).snapshot(5).files == whole.files


@pytest.mark.parametrize(("first", "last"), [(0, 3), (2, 4), (6, 8)])
def test_compacted_commits_lead_on_but_not_into_them(table: Path, first: int, last: int) -> None:
    whole = {snapshot.version: snapshot for snapshot in DeltaLog(str(table)).snapshots(range(9))}
    compacted(table, first, last)
    log = DeltaLog(str(table))
    assert log.versions() == tuple(version for version in range(9) if not first <= version < last or version == 5)
    for snapshot in log.snapshots(log.versions()):
        assert snapshot.files == whole[snapshot.version].files
    with pytest.raises(LogGap) as caught:
        log.snapshot(first)
    assert caught.value.version == first


def test_compacted_commits_that_were_only_put_together_are_refused(table: Path) -> None:
    """A file that comes and goes within them is in there twice, and nothing says what came first."""
    whole = DeltaLog(str(table)).snapshot(7)
    names = [commit_file(table, version) for version in (7, 6)]
    both = table / "_delta_log" / f"{6:020d}.{7:020d}.compacted.json"
    both.write_text("\n".join(name.read_text() for name in names))
    assert DeltaLog(str(table)).snapshot(7) == whole, "the commits are there"
    for name in names:
        name.unlink()
    with pytest.raises(SourceUnreadable, match=r"compacted\.json does not follow .*both added and removed"):
        DeltaLog(str(table)).snapshot(7)


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]\n", b'{"add":{"size":1}}\n', b'{"add"'])
def test_compacted_commits_that_cannot_be_read_are_left_out(table: Path, content: bytes) -> None:
    whole = DeltaLog(str(table)).snapshot(8)
    (table / "_delta_log" / f"{6:020d}.{7:020d}.compacted.json").write_bytes(content or b"\0")
    assert DeltaLog(str(table)).snapshot(8) == whole
    assert DeltaLog(str(table)).state().files == len(whole.files)


@pytest.mark.parametrize("form", ["cut off", "garbage", "no action", "sidecar"])
def test_a_checkpoint_that_cannot_be_read_is_left_out(table: Path, form: str) -> None:
    whole = DeltaLog(str(table)).snapshot(8)
    if form == "sidecar":
        with_sidecars(table, 5, "json")[1].write_bytes(b"garbage")
    elif form == "no action":
        pq.write_table(pa.table({"add": [{"size": 1}]}), classic(table, 5))
    else:
        content = classic(table, 5).read_bytes()
        classic(table, 5).write_bytes(content[:-100] if form == "cut off" else b"garbage")
    log = DeltaLog(str(table))
    assert (log.snapshot(8), log.state().files) == (whole, len(whole.files))
    assert_same_files(log, whole)
    assert log.state(6).files == len(log.snapshot(6).files)
    with pytest.raises((SourceUnreadable, LogGap), match=r"checkpoint|sidecar|commit 5"):
        _without_commits(table, range(6)).snapshot(8)


def test_near_versions_are_reached_without_reading_a_checkpoint(table: Path) -> None:
    log = DeltaLog(str(table))
    classic(table, 5).write_bytes(b"broken")
    assert [snapshot.version for snapshot in log.snapshots(range(9))] == list(range(9))


@settings(max_examples=40)
@given(data=st.data())
def test_random_histories_are_replayed(data: st.DataObject) -> None:
    """With deletion vectors of every kind, files that come back, and commits that are compacted or checkpointed."""
    with tempfile.TemporaryDirectory() as folder:
        lake = data.draw(histories(Path(folder).resolve() / "table", inline=True))
        newest = len(lake.states) - 1
        checkpoint = data.draw(st.none() | st.integers(0, newest))
        if checkpoint is not None:
            DeltaTable(lake.root, version=checkpoint).create_checkpoint()
            _drawn_form(data, lake.root, checkpoint)
        if data.draw(st.booleans()):
            compacted(lake.root, *sorted(data.draw(st.tuples(st.integers(0, newest), st.integers(0, newest)))))
        log = DeltaLog(str(lake.root))
        assert log.versions()[-1] == newest
        wanted = data.draw(st.sets(st.sampled_from(log.versions()), min_size=1))
        for snapshot in log.snapshots(wanted):
            assert _live(snapshot) == lake.states[snapshot.version]
            assert_same_files(log, snapshot)


def _drawn_form(data: st.DataObject, table: Path, version: int) -> None:
    form = data.draw(st.sampled_from(["classic", "parts", "json", "parquet"]))
    if form == "parts":
        in_parts(table, version)
    elif form != "classic":
        with_sidecars(table, version, form)


def _live(snapshot: Snapshot) -> set[tuple[str, str | None]]:
    return {(file.path, file.vector.id if file.vector else None) for file in snapshot.files}
