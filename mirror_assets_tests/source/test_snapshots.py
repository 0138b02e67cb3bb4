"""The replay of real logs, compared at every version with the snapshot of delta-rs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.source.errors import LogGap
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import Snapshot
from mirror_assets_tests.source.handmade import commit_file, info

_NAMES = pa.array(["a b", "c:d%", "é", None])


def _rows(first: int, last: int) -> pa.Table:
    ids = pa.array(range(first, last), pa.int64())
    return pa.table({"id": ids, "p": _NAMES.take(pa.array([i % 4 for i in range(first, last)]))})


def _history(path: Path) -> Path:
    """Every kind of commit that adds or removes files, a checkpoint in between."""
    write_deltalake(path, _rows(0, 20), partition_by=["p"], configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(path, _rows(20, 30), mode="append")
    table = DeltaTable(path)
    table.update(predicate="id < 7", updates={"id": "id + 100"})
    table.delete("id = 8")
    table.create_checkpoint()
    table.optimize.compact()
    write_deltalake(path, _rows(2, 3), mode="overwrite", predicate="p = 'é'")
    DeltaTable(path).restore(1)
    write_deltalake(path, _rows(0, 3), mode="overwrite")
    return path


def _of_delta_rs(path: str, version: int) -> list[tuple[str, int, int, int]]:
    rows = pa.table(DeltaTable(path, version=version).get_add_actions()).to_pylist()
    return sorted(
        (unquote(row["path"]), row["size_bytes"], row["num_records"], row["modification_time"]) for row in rows
    )


def _of_ours(snapshot: Snapshot) -> list[tuple[str, int, int | None, int]]:
    return sorted((file.path, file.bytes, file.rows, file.modified_ms) for file in snapshot.files)


def test_every_version_is_that_of_delta_rs(tmp_path: Path) -> None:
    path = str(_history(tmp_path / "t"))
    log = DeltaLog(path)
    assert log.versions() == tuple(range(log.newest() + 1))
    for snapshot in log.snapshots(log.versions()):
        assert _of_ours(snapshot) == _of_delta_rs(path, snapshot.version)
        assert snapshot.files == log.snapshot(snapshot.version).files
        assert snapshot.metadata.table_id == str(DeltaTable(path).metadata().id)
        assert snapshot.timestamp_ms == log.time_ms(snapshot.version)


def test_paths_and_partitions_are_those_on_the_disk(tmp_path: Path) -> None:
    path = _history(tmp_path / "t")
    log = DeltaLog(str(path))
    snapshot = log.snapshot(1)
    assert {file.partition["p"] for file in snapshot.files} == {"a b", "c:d%", "é", None}
    assert all((path / file.path).stat().st_size == file.bytes for file in snapshot.files)
    stored = {file.path: file.bytes for file in log.stored_files()}
    assert {file.path: file.bytes for file in snapshot.files}.items() <= stored.items()
    assert any(name.startswith("_change_data/") for name in stored)
    assert not any(name.startswith("_delta_log") for name in stored)


def test_remote_and_local_say_the_same(tmp_path: Path) -> None:
    path = _history(tmp_path / "t")
    local, remote = DeltaLog(str(path)), DeltaLog(path.as_uri())
    for mine, other in zip(local.snapshots(local.versions()), remote.snapshots(remote.versions()), strict=True):
        assert (mine.files, mine.timestamp_ms) == (other.files, other.timestamp_ms)
        assert mine.tombstones == other.tombstones
    assert local.stored_files() == remote.stored_files()


def test_nothing_is_read_over_a_hole(tmp_path: Path) -> None:
    path = _history(tmp_path / "t")
    commit_file(path, 5).unlink()
    log = DeltaLog(str(path))
    assert (log.versions(), log.newest()) == ((0, 1, 2, 3, 4), 7)
    for read in (lambda: log.snapshot(6), lambda: log.logged_commits(4, 6), lambda: log.time_ms(5)):
        with pytest.raises(LogGap) as caught:
            read()
        assert caught.value.version == 5


def test_commits_have_all_their_files(tmp_path: Path) -> None:
    path = _history(tmp_path / "t")
    log = DeltaLog(str(path))
    commits = [commit.actions for commit in log.logged_commits(0, log.newest())]
    live: set[str] = set()
    for commit, snapshot in zip(commits, log.snapshots(log.versions()), strict=True):
        live = live - {file.path for file in commit.removed} | {file.path for file in commit.added}
        assert live == {file.path for file in snapshot.files}
    assert [bool(commit.change_files) for commit in commits][:5] == [False, False, True, True, False]


def test_few_commits_are_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _history(tmp_path / "t")
    log, whole = DeltaLog(str(path)), list(DeltaLog(str(path)).logged_commits(0, 7))
    monkeypatch.setattr("mirror_assets.source.log._COMMITS", 2)
    for commit, expected in zip(log.logged_commits(0, 7), whole, strict=True):
        assert commit == expected
        assert len(log._known.commits) <= 2


def test_files_in_folders_of_the_log_are_no_commits(tmp_path: Path) -> None:
    """Copies that someone keeps there; Delta lists the log's folder alone."""
    path = _history(tmp_path / "t")
    files = DeltaLog(str(path)).snapshot(1).files
    backup = path / "_delta_log" / "backup"
    backup.mkdir()
    (backup / commit_file(path, 1).name).write_text(json.dumps(info()))
    (backup / commit_file(path, 9).name).write_text(json.dumps(info()))
    log = DeltaLog(str(path))
    assert (log.newest(), log.snapshot(1).files) == (7, files)
