"""Scans of hand-made logs: which files and rows they name. Spark isn't needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from mirror_assets.errors import RebuildError, RetryError, SettingError
from mirror_assets.source.commits import CommitRange, commit_digest
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan import RowKind, Scan
from mirror_assets.source.scan_builder import VersionPart, scan_changes, scan_differences, scan_version
from mirror_assets_tests.handmade_table import Action, HandmadeTable, features, hidden, remove
from mirror_assets_tests.source.handmade import column, commit_file, info

_ID, _NAME, _PART = column("id", "long"), column("name", "string"), column("part", "string")
_INSERT, _DELETE = RowKind.INSERT, RowKind.DELETE


def _rows(*ids: int) -> list[dict[str, object]]:
    return [{"id": id_, "name": f"n{id_}"} for id_ in ids]


def _named(scan: Scan) -> list[tuple[str, int, RowKind]]:
    return [(file.path, file.version, file.kind) for file in scan.files]


@pytest.fixture
def table(tmp_path: Path) -> HandmadeTable:
    return HandmadeTable(tmp_path / "t", _ID, _NAME)


def test_a_file_that_is_added_while_it_is_live_is_not_read_again(table: HandmadeTable) -> None:
    one, two = table.add(*_rows(1), name="one.parquet"), table.add(*_rows(2), name="two.parquet")
    table.commit(info(), one)
    table.commit(info(), one, two)
    table.commit(info(), two)
    log = DeltaLog(str(table.path))
    assert _named(scan_changes(log, CommitRange(1, 2))) == [("two.parquet", 1, _INSERT)]
    assert scan_changes(log, CommitRange(2, 2)).files == ()
    assert _named(scan_differences(log, CommitRange(1, 2)).last) == [("two.parquet", 2, _INSERT)]


def test_a_file_that_is_not_live_is_not_removed_again(table: HandmadeTable) -> None:
    one, two = table.add(*_rows(1), name="one.parquet"), table.add(*_rows(2), name="two.parquet")
    table.commit(info(), one, two)
    table.commit(info(), remove(one), remove(one))
    table.commit(info(), remove(one))
    log = DeltaLog(str(table.path))
    assert _named(scan_changes(log, CommitRange(1, 2))) == [("one.parquet", 1, _DELETE)]
    assert scan_changes(log, CommitRange(2, 2)).files == ()


@pytest.mark.parametrize("commits", [1, 2])
def test_another_file_under_the_same_name_is_not_read_as_the_old_one(table: HandmadeTable, commits: int) -> None:
    old = table.add(*_rows(1, 2), name="one.parquet")
    table.commit(info(), old)
    new = table.add(*_rows(1, 3, 4), name="one.parquet")
    for actions in ([remove(old), new],) if commits == 1 else ([remove(old)], [new]):
        table.commit(info(), *actions)
    with pytest.raises(RebuildError, match="under the same name, one"):
        scan_changes(DeltaLog(str(table.path)), CommitRange(1, commits))
    with pytest.raises(RebuildError, match="under the same name, one"):
        scan_differences(DeltaLog(str(table.path)), CommitRange(1, commits))


def _with_vector(file: Action) -> Action:
    """The remove action of a file with its vector."""
    action = remove(file)
    return {"remove": action["remove"] | {"deletionVector": file["add"]["deletionVector"]}}


def test_a_remove_with_another_vector_leaves_the_live_file(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", _ID, _NAME, protocol=features("deletionVectors"))
    one, two = table.add(*_rows(1, 2), name="one.parquet"), table.add(*_rows(3), name="two.parquet")
    live = hidden(one, 0)
    table.commit(info(), live, two)
    table.commit(info(), remove(one), remove(two))
    table.commit(info(), _with_vector(live), remove(one))
    log = DeltaLog(str(table.path))
    assert _named(scan_changes(log, CommitRange(1, 1))) == [("two.parquet", 1, _DELETE)]
    (gone,) = scan_changes(log, CommitRange(2, 2)).files
    assert (gone.path, gone.kind) == ("one.parquet", _DELETE)
    assert gone.chosen is not None
    assert list(gone.chosen.rows) == [0]
    assert [file.path for file in scan_differences(log, CommitRange(1, 1)).before.files] == ["two.parquet"]


@pytest.mark.parametrize("vectors", [True, False])
def test_the_version_before_is_read_only_where_a_removed_file_may_have_a_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    table = HandmadeTable(tmp_path / "t", _ID, _NAME, protocol=features(*(["deletionVectors"] if vectors else [])))
    one = table.add(*_rows(1, 2), name="one.parquet")
    live = hidden(one, 0) if vectors else one
    table.commit(info(), live)
    table.commit(info(), _with_vector(live) if vectors else remove(live))
    monkeypatch.setattr(DeltaLog, "snapshots", pytest.fail)
    assert _named(scan_changes(DeltaLog(str(table.path)), CommitRange(1, 1))) == [("one.parquet", 1, _DELETE)]


def test_a_file_that_a_commit_removes_and_adds_again_is_live(table: HandmadeTable) -> None:
    one = table.add(*_rows(1), name="one.parquet")
    table.commit(info(), one)
    table.commit(info(), remove(one), one)
    table.commit(info(), remove(one))
    log = DeltaLog(str(table.path))
    assert _named(scan_changes(log, CommitRange(1, 1))) == []
    assert _named(scan_changes(DeltaLog(log.uri), CommitRange(2, 2))) == [("one.parquet", 2, _DELETE)]


def test_a_file_that_comes_back_is_read_for_each_commit(table: HandmadeTable) -> None:
    one = table.add(*_rows(1), name="one.parquet")
    table.commit(info(), one)
    table.commit(info(), remove(one))
    table.commit(info(), one)
    log = DeltaLog(str(table.path))
    assert _named(scan_changes(log, CommitRange(1, 2))) == [("one.parquet", 1, _DELETE), ("one.parquet", 2, _INSERT)]
    differing = scan_differences(log, CommitRange(1, 2))
    assert differing.before.files == differing.last.files == ()


def test_the_live_files_after_a_scan_are_known_to_the_next(table: HandmadeTable) -> None:
    one = table.add(*_rows(1), name="one.parquet")
    table.commit(info(), one)
    table.commit(info(), table.add(*_rows(2), name="two.parquet"))
    log = DeltaLog(str(table.path))
    table_id = log.state().table_id
    scan_changes(log, CommitRange(1, 1, table_id))
    live = log.live_paths(1, table_id)
    assert live is log.live_paths(1, table_id)
    assert ["one.parquet" in live, "two.parquet" in live, "three.parquet" in live] == [True, True, False]
    assert log.live_paths(1, "another table") is not live


def test_commits_that_were_replaced_since_they_were_planned_are_not_read(table: HandmadeTable) -> None:
    table.commit(info(), table.add(*_rows(1)))
    table.commit(info(), table.add(*_rows(2)))
    file = commit_file(table.path, 1)
    planned = CommitRange(1, 1, digests={1: commit_digest(file.read_bytes())})
    log = DeltaLog(str(table.path))
    assert len(scan_changes(log, planned).files) == 1
    file.write_text(file.read_text() + "\n")
    with pytest.raises(RetryError, match="commit 1 was replaced"):
        scan_changes(log, planned)


def test_another_table_at_the_same_path_is_not_read(table: HandmadeTable) -> None:
    table.commit(info(), table.add(*_rows(1)))
    table.commit(info(), table.add(*_rows(2)))
    log = DeltaLog(str(table.path))
    with pytest.raises(RetryError, match="version 1 is of another table now"):
        scan_changes(log, CommitRange(1, 1, "the planned one"))
    with pytest.raises(RetryError, match="version 1 is of another table now"):
        scan_version(log, 1, VersionPart(table_id="the planned one"))


@pytest.mark.parametrize("name", ["_hidden.parquet", "a/.hidden.parquet", "x.parquet._COPYING_"])
def test_a_name_that_spark_skips_without_an_error_is_refused(table: HandmadeTable, name: str) -> None:
    table.commit(info(), table.add(*_rows(1), name=name))
    with pytest.raises(SettingError, match="because of the file's name"):
        scan_version(DeltaLog(str(table.path)), 0)


@pytest.fixture(params=["left out", "empty"])
def bare(tmp_path: Path, request: pytest.FixtureRequest) -> HandmadeTable:
    """A table whose second commit removes a file without its partition values."""
    made = HandmadeTable(tmp_path / "t", _ID, _NAME, _PART, partitioned_by=["part"])
    one = made.add(*_rows(1), partition={"part": "x y"}, name="one.parquet")
    made.commit(info(), one)
    gone = remove(one, "partitionValues")
    made.commit(info(), {"remove": gone["remove"] | ({"partitionValues": {}} if request.param == "empty" else {})})
    return made


def test_partition_values_that_a_remove_lacks_are_those_of_its_add(bare: HandmadeTable) -> None:
    (file,) = scan_changes(DeltaLog(str(bare.path)), CommitRange(1, 1)).files
    assert (file.kind, file.partition) == (_DELETE, {"part": "x y"})


def test_partition_values_that_only_a_lost_version_has_are_not_null(bare: HandmadeTable) -> None:
    DeltaTable(str(bare.path)).create_checkpoint()
    commit_file(bare.path, 0).unlink()
    with pytest.raises(SettingError, match=r"names one\.parquet without its value of the partition column `part`"):
        scan_changes(DeltaLog(str(bare.path)), CommitRange(1, 1))


def test_partition_values_that_a_change_file_lacks_are_not_null(tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path / "t", _ID, _PART, partitioned_by=["part"])
    one = table.add({"id": 1}, partition={"part": "a"}, name="one.parquet")
    table.commit(info(), one)
    changes = table.change_file({"id": 1, "_change_type": "delete"})
    table.commit(info(), remove(one), changes)
    log = DeltaLog(str(table.path))
    with pytest.raises(SettingError, match=r"change file .* without its partition values"):
        scan_changes(log, CommitRange(1, 1))
    assert _named(scan_changes(log, CommitRange(1, 1), by_feed=False)) == [("one.parquet", 1, _DELETE)]
