"""The log of real tables written by delta-rs, and of what only a hand can write. No Spark."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from mirror_assets.errors import ErrorCode
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SourceUnreadable
from mirror_assets.source.commits import source_columns
from mirror_assets.source.errors import LogGap, SourceNotDelta
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    column,
    commit_file,
    file_action,
    info,
    metadata_action,
    schema_string,
    write_commit,
)

_FEED = {"delta.enableChangeDataFeed": "true"}
_TWO_COLUMNS = schema_string(column("id", nullable=False), column("amount", "decimal(10,2)"))


def _rows(first: int, last: int) -> pa.Table:
    ids = list(range(first, last))
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([i % 2 for i in ids], pa.int32())})


def _history(path: Path) -> DeltaLog:
    """A table with one commit of every kind that delta-rs writes."""
    write_deltalake(path, _rows(0, 20), partition_by=["p"], configuration=_FEED)
    write_deltalake(path, _rows(20, 30), mode="append")
    table = DeltaTable(path)
    table.update(predicate="id < 7", updates={"id": "id + 100"})
    table.delete("id = 8")
    table.delete("p = 1 and id > 10")
    table.delete("p = 1")
    merge = table.merge(_rows(12, 24), "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all("s.id <> 12").when_not_matched_insert_all().execute()
    merge = table.merge(_rows(40, 44), "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_not_matched_insert_all().execute()
    merge = table.merge(_rows(40, 42), "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_delete().when_not_matched_by_source_update({"id": "t.id + 200"}, predicate="t.id < 14").execute()
    write_deltalake(path, _rows(0, 5), mode="overwrite")
    write_deltalake(path, _rows(4, 5), mode="overwrite", predicate="id = 4")
    write_deltalake(path, _rows(0, 1), mode="overwrite", predicate="p = 0")
    write_deltalake(path, _rows(30, 40), mode="append")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).restore(1)
    DeltaTable(path).delete()
    return DeltaLog(str(path))


def _short(path: Path, commits: int) -> DeltaLog:
    """A table of appends, a row each."""
    write_deltalake(path, _rows(0, 1), configuration=_FEED)
    for number in range(1, commits):
        write_deltalake(path, _rows(number, number + 1), mode="append")
    return DeltaLog(str(path))


def test_rows_of_every_commit_are_those_of_the_feed(tmp_path: Path) -> None:
    log = _history(tmp_path / "t")
    commits = log.commits(0, log.state().version)
    feed = pa.table(DeltaTable(tmp_path / "t").load_cdf(starting_version=0))
    real = Counter(feed.column("_commit_version").to_pylist())
    assert {commit.version for commit in commits if commit.changes_data} == set(real)
    exact = {commit.version: commit.rows for commit in commits if commit.changes_data and not commit.has_cdc}
    assert exact == {version: rows for version, rows in real.items() if version in exact}
    assert all(commit.rows_exact is not commit.has_cdc for commit in commits)
    assert all(commit.rows > 0 for commit in commits if commit.has_cdc), "change files are estimated by bytes"
    assert {commit.operation for commit in commits if commit.has_cdc} == {"UPDATE", "DELETE", "MERGE", "WRITE"}
    assert [commit.operation for commit in commits if not commit.changes_data] == ["OPTIMIZE"]


def test_the_state_at_the_tip(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", _rows(0, 20), partition_by=["p"], configuration=_FEED)
    state = DeltaLog(str(tmp_path / "t")).state()
    assert (state.version, state.files, state.rows, state.stored_rows) == (0, 2, 20, 20)
    assert state.bytes == sum(file.stat().st_size for file in (tmp_path / "t").rglob("*.parquet"))
    assert (state.feed_enabled, state.partition_columns) == (True, ("p",))
    assert source_columns(state) == (("id", "bigint"), ("p", "int"))
    assert state.table_id == str(DeltaTable(tmp_path / "t").metadata().id)
    (commit,) = DeltaLog(str(tmp_path / "t")).commits(0, 0)
    assert commit.metadata is not None
    assert commit.timestamp_ms == state.timestamp_ms
    assert (commit.metadata.schema_string, commit.metadata.table_id) == (state.schema_string, state.table_id)


def test_the_state_at_an_older_version(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 3)
    assert [log.state(version).rows for version in (0, 1, 2)] == [1, 2, 3]
    assert log.state(0).timestamp_ms < log.state(2).timestamp_ms


def test_rows_are_unknown_where_a_file_has_no_statistics(tmp_path: Path) -> None:
    metadata = metadata_action(_TWO_COLUMNS)
    adds = [file_action("add", "a.parquet"), file_action("add", "b.parquet", records=None, size=900)]
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata, *adds])
    state = DeltaLog(str(tmp_path)).state()
    assert (state.rows, state.stored_rows, state.files, state.bytes, state.likely_rows) == (None, None, 2, 1000, 10)


def test_an_empty_table(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [info("CREATE TABLE"), PROTOCOL, metadata_action(_TWO_COLUMNS)])
    state = DeltaLog(str(tmp_path)).state()
    assert (state.rows, state.files, state.bytes, state.feed_enabled) == (0, 0, 0, False)
    assert source_columns(state) == (("id", "bigint"), ("amount", "decimal(10,2)"))


def test_commits_reads_no_other_commit(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 5)
    for version in (0, 1, 4):
        commit_file(tmp_path / "t", version).write_bytes(b"garbage")
    assert [commit.rows for commit in log.commits(2, 3)] == [1, 1]
    assert log.commits(4, 3) == ()
    with pytest.raises(SourceUnreadable, match=r"00001\.json does not follow Delta's protocol: line 1: "):
        log.commits(1, 2)


def test_a_hole_in_the_log_is_named(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 8)
    for version in (3, 5):
        commit_file(tmp_path / "t", version).unlink()
    assert len(log.commits(0, 2)) == 3
    with pytest.raises(LogGap, match="commit 3 is not in the Delta log") as caught:
        log.commits(0, 7)
    assert (caught.value.version, caught.value.code) == (3, ErrorCode.LOG_GAP)
    assert log.earliest() == 6
    with pytest.raises(LogGap, match="commit 8"):
        log.commits(6, 8)


def test_a_cleaned_log_with_a_checkpoint(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 6)
    DeltaTable(tmp_path / "t", version=4).create_checkpoint()
    assert log.earliest() == 0
    for version in range(4):
        commit_file(tmp_path / "t", version).unlink()
    assert (log.earliest(), log.state().version, log.state().rows) == (4, 5, 6)
    assert [commit.version for commit in log.commits(4, 5)] == [4, 5]
    assert log.state(4).rows == 5
    with pytest.raises(LogGap, match="commit 3"):
        log.commits(3, 5)
    for version in (3, 99):
        with pytest.raises(LogGap, match=f"commit {version}"):
            log.state(version)


def test_only_commit_files_are_commits(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 3)
    folder = tmp_path / "t" / "_delta_log"
    names = [f"{0:020d}.{1:020d}.compacted.json", f"{9:020d}.checkpoint.parquet", f"{9:020d}.crc", "9.json"]
    for name in [*names, f"{9:020d}.json.tmp", f".{9:020d}.json.crc"]:
        (folder / name).write_text("{}")
    (folder / "_staged_commits").mkdir()
    (folder / "_staged_commits" / f"{9:020d}.json").write_text("{}")
    commit_file(tmp_path / "t", 0).unlink()
    assert log.earliest() == 1


def test_a_commit_without_a_time_has_its_files_own(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [PROTOCOL, metadata_action(_TWO_COLUMNS)])
    log, modified = DeltaLog(str(tmp_path)), commit_file(tmp_path, 0).stat().st_mtime_ns // 1_000_000
    assert log.state().timestamp_ms == modified
    assert log.commits(0, 0)[0].timestamp_ms == modified


def test_files_that_are_gone_leave_an_estimate(tmp_path: Path) -> None:
    gone = [file_action("remove", path, records=None, size=300) for path in ("a%20b.parquet", "file:/x")]
    write_commit(tmp_path, 0, [info("WRITE"), *gone])
    (commit,) = DeltaLog(str(tmp_path)).commits(0, 0)
    assert (commit.rows, commit.rows_exact) == (6, False)


@pytest.mark.parametrize("uri", ["file://{}", "file:{}", "{}/"])
def test_other_spellings_of_a_local_path(tmp_path: Path, uri: str) -> None:
    _short(tmp_path / "t", 1)
    log = DeltaLog(uri.format(tmp_path / "t"))
    assert (log.state().version, log.earliest(), log.commits(0, 0)[0].rows) == (0, 0, 1)


def test_a_folder_that_is_no_delta_table(tmp_path: Path) -> None:
    (tmp_path / "part.parquet").write_bytes(b"")
    with pytest.raises(SourceNotDelta, match=f"{tmp_path} is not a Delta table.*`source`"):
        DeltaLog(str(tmp_path)).state()
    for read in (DeltaLog.earliest, DeltaLog.newest):
        with pytest.raises(SourceNotDelta):
            read(DeltaLog(str(tmp_path)))
    with pytest.raises(SourceNotDelta, match="missing is not a Delta table"):
        DeltaLog(str(tmp_path / "missing")).state()


@pytest.mark.parametrize("version", ["@v2", "@V12", "@20240428091500000"])
def test_an_address_of_one_version_is_refused_unless_a_folder_has_this_name(tmp_path: Path, version: str) -> None:
    _short(tmp_path / "t", 1)
    named = f"{tmp_path}/t{version}"
    with pytest.raises(SourceNotDelta, match=rf"leave out `{version}` of the address.*set the table's `start`"):
        DeltaLog(named).state()
    (tmp_path / "t").rename(named)
    assert DeltaLog(named).state().version == 0


def test_other_names_with_an_at_sign_are_no_version(tmp_path: Path) -> None:
    for name in ("t@v", "t@2024", "t@v2x", "v2", "t@v2/x"):
        with pytest.raises(SourceNotDelta, match="correct its address"):
            DeltaLog(str(tmp_path / name)).state()


@pytest.mark.parametrize("uri", ["nowhere://x/y", "{}/file"])
def test_an_address_that_cannot_be_read(tmp_path: Path, uri: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SourceUnreadable, match=r"can't be read.*Next: correct its address.*`source`") as caught:
        DeltaLog(uri.format(tmp_path)).state()
    assert "\n" not in str(caught.value)


def test_three_thousand_commits_are_read_in_seconds(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [info("CREATE TABLE"), PROTOCOL, metadata_action(_TWO_COLUMNS, **_FEED)])
    files = [file_action("remove", "r"), file_action("add", "a"), file_action("cdc", "c", data=False)]
    for version in range(1, 3_001):
        write_commit(tmp_path, version, [info("UPDATE", numUpdatedRows="5"), *files])
    log, began = DeltaLog(str(tmp_path)), time.perf_counter()
    commits = log.commits(1, 3_000)
    assert time.perf_counter() - began < 8  # 0.7 s on a quiet machine; a minute when files are read twice or by Spark
    assert [commit.version for commit in commits] == list(range(1, 3_001))
    assert {commit.rows for commit in commits} == {10}
    assert log.earliest() == 0


_NOT_DELTAS: dict[str, str] = {
    "a byte order mark": "\ufeff{add}\n",
    "no time": '{{"add":{{"path":"b.parquet","size":5,"dataChange":true,"partitionValues":{{}}}}}}',
    "no size": '{{"add":{{"path":"b.parquet","modificationTime":1,"dataChange":true,"partitionValues":null}}}}',
    "no data change": '{{"add":{{"path":"b.parquet","size":5,"modificationTime":1,"partitionValues":{{}}}}}}',
    "statistics as an object": '{{"add":{{"path":"b.parquet","size":5,"dataChange":true,"stats":{{"numRecords":1}}}}}}',
    "a null property": "{metadata}\n{add}",
}


@pytest.mark.parametrize("form", _NOT_DELTAS)
def test_a_log_that_deltalake_refuses_is_replayed(tmp_path: Path, form: str) -> None:
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata_action(_TWO_COLUMNS, **_FEED), file_action("add")])
    metadata = metadata_action(_TWO_COLUMNS, "other", **_FEED)
    raw = metadata["metaData"]
    assert isinstance(raw, dict)
    odd = {"metaData": {**raw, "configuration": {**_FEED, "a": None, "b": True}}}
    add = json.dumps(file_action("add", "b.parquet", size=5, records=1))
    text = _NOT_DELTAS[form].format(add=add, metadata=json.dumps(odd))
    commit_file(tmp_path, 1).write_bytes(text.encode())
    with pytest.raises(DeltaError):
        DeltaTable(tmp_path).get_add_actions()
    log = DeltaLog(str(tmp_path))
    state = log.state()
    assert (state.version, state.files, state.feed_enabled, len(state.schema.fields)) == (1, 2, True, 2)
    assert [file.path for file in log.reopened().snapshot(1).files] == ["a.parquet", "b.parquet"]
    assert [commit.version for commit in log.commits(1, 1)] == [1]
    assert log.state(0).files == 1


def test_rows_of_a_replayed_state_are_those_that_no_vector_hides(tmp_path: Path) -> None:
    write_commit(tmp_path, 0, [info(), PROTOCOL, metadata_action(_TWO_COLUMNS), file_action("add", deleted=3)])
    commit_file(tmp_path, 0).write_bytes(b"\xef\xbb\xbf" + commit_file(tmp_path, 0).read_bytes())
    state = DeltaLog(str(tmp_path)).state()
    assert (state.rows, state.stored_rows, state.bytes) == (7, 10, 100)


def test_what_no_reader_can_read_is_refused_with_file_and_line(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 2)
    commit_file(tmp_path / "t", 1).write_text('{"commitInfo":{}}\n{"add":{"size":1}}\n')
    message = r"_delta_log/0{19}1\.json does not follow Delta's protocol: line 2: the field `path` is missing"
    for read in (log.state, log.snapshot, lambda: log.commits(0, 1)):
        with pytest.raises(SourceUnreadable, match=message):
            read()


def test_the_digest_of_a_commit_is_that_of_its_file(tmp_path: Path) -> None:
    log = _short(tmp_path / "t", 2)
    first, second = log.commits(0, 1)
    assert (len(first.digest), first.digest == second.digest) == (32, False)
    assert log.commits(1, 1)[0].digest == second.digest
    commit_file(tmp_path / "t", 1).write_bytes(commit_file(tmp_path / "t", 1).read_bytes() + b"\n")
    assert log.commits(1, 1)[0].digest != second.digest


def test_a_commit_with_new_metadata_has_the_highest_column_id_before_it(tmp_path: Path) -> None:
    def mapped(highest: int) -> dict[str, object]:
        properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(highest)}
        return metadata_action(schema_string(column("id", mapped=(1, "p1"))), **properties)

    protocol: dict[str, object] = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    write_commit(tmp_path, 0, [info(), protocol, mapped(3)])
    for version, highest in ((1, 3), (2, 4), (4, 4)):
        write_commit(tmp_path, version, [info(), mapped(highest)])
    write_commit(tmp_path, 3, [info(), file_action("add")])
    log = DeltaLog(str(tmp_path))
    assert [commit.column_id_before for commit in log.commits(0, 4)] == [None, 3, 3, None, 4]
    assert [commit.column_id_before for commit in log.commits(4, 4)] == [4]
    commit_file(tmp_path, 3).unlink()
    assert [commit.column_id_before for commit in log.commits(4, 4)] == [None]


@pytest.mark.parametrize("part", [0, 1, -9])
def test_the_newest_commit_is_not_read_before_it_is_written(tmp_path: Path, part: int) -> None:
    write_deltalake(tmp_path, _rows(0, 3))
    write_deltalake(tmp_path, _rows(3, 6), mode="append")
    newest = commit_file(tmp_path, 1)
    whole = newest.read_bytes().rstrip()
    newest.write_bytes(whole[:part])
    with raises_row(SOURCE_UNAVAILABLE, match=r"the newest commit, .* is empty or cut off"):
        DeltaLog(str(tmp_path)).state()
    newest.write_bytes(whole)
    assert DeltaLog(str(tmp_path)).state().rows == 6


def test_an_empty_commit_counts_once_another_follows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, _rows(0, 3))
    commit_file(tmp_path, 1).touch()
    write_commit(tmp_path, 2, [info()])
    log = DeltaLog(str(tmp_path))
    assert (log.state().version, log.state().rows, len(log.commits(1, 2))) == (2, 3, 2)
