"""What framing keeps and loads: by example, and on random histories against whole versions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.features.direct_lake.framing import (
    FileSum,
    FramingEffect,
    committed_by,
    framing_effect,
    recent_commits,
    sum_of,
    table_sizes,
)
from mirror_assets.source.actions import Actions, CommitInfo, LiveFile, Metadata, Protocol, Tombstone, Vector
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import LoggedCommit, Snapshot
from mirror_assets_tests.source.handmade import (
    PROTOCOL,
    Action,
    column,
    commit_file,
    metadata_action,
    schema_string,
    write_commit,
)

Files = Mapping[str, LiveFile]


def _file(path: str, rows: int | None = 10, size: int = 100, vector: Vector | None = None) -> LiveFile:
    return LiveFile(path, size, rows, 0, {}, vector, {})


def _vector(name: str, rows: int = 1) -> Vector:
    return Vector(name, f"{name}.bin", 34, rows)


def _version(version: int, files: Files) -> Snapshot:
    return Snapshot("t", version, version, Metadata("id", "{}"), Protocol(3, 7), tuple(files.values()), ())


_ONE, _TWO, _THREE, _UNKNOWN = _file("1", 10, 100), _file("2", 30, 300), _file("3", 60, 600), _file("4", None, 50)
_HIDDEN = _file("2", 30, 300, _vector("a", 6))
_HIDDEN_SUM = FileSum(1, 24, bytes=300)


@pytest.mark.parametrize(
    ("before", "after", "sums", "to_load"),
    [
        pytest.param(
            [_ONE, _TWO],
            [_ONE, _TWO, _THREE],
            {"kept": FileSum(2, 40, bytes=400), "reloaded": FileSum(1, 60, bytes=600)},
            (0.6, 600),
            id="append",
        ),
        pytest.param(
            [_ONE, _TWO],
            [_TWO, _THREE],
            {"kept": sum_of(_TWO), "reloaded": sum_of(_THREE), "dropped": sum_of(_ONE)},
            (60 / 90, 600),
            id="rewrite",
        ),
        pytest.param([_TWO], [_HIDDEN], {"changed": _HIDDEN_SUM, "vector_bytes": 34}, (0, 34), id="vector"),
        pytest.param([_HIDDEN], [replace(_HIDDEN)], {"kept": _HIDDEN_SUM}, (0, 0), id="same vector"),
        pytest.param(
            [_HIDDEN],
            [replace(_HIDDEN, vector=_vector("b", 6))],
            {"changed": _HIDDEN_SUM, "vector_bytes": 34},
            (0, 34),
            id="other vector",
        ),
        pytest.param([_HIDDEN], [_TWO], {"changed": sum_of(_TWO)}, (0, 0), id="vector purged"),
        pytest.param(
            [_ONE],
            [_ONE, _UNKNOWN],
            {"kept": sum_of(_ONE), "reloaded": FileSum(1, without_rows=1, bytes=50)},
            (None, 50),
            id="no statistics",
        ),
        pytest.param([_ONE], [], {"dropped": sum_of(_ONE)}, (None, 0), id="empty"),
    ],
)
def test_framing_loads_new_files_and_vectors(
    before: list[LiveFile], after: list[LiveFile], sums: dict[str, FileSum], to_load: tuple[float | None, int]
) -> None:
    first, last = ({file.path: file for file in files} for files in (before, after))
    effect = framing_effect(_version(0, first), _version(1, last))
    assert effect == FramingEffect(0, 1, **sums)  # type: ignore[arg-type]
    assert (effect.reloaded_share, effect.bytes_to_load) == to_load


def test_rows_without_statistics_are_unknown() -> None:
    assert (sum_of(_UNKNOWN).rows, (sum_of(_UNKNOWN) + sum_of(_ONE)).rows) == (None, None)


@st.composite
def _histories(draw: st.DrawFn) -> list[Files]:
    """Files after each commit: appends, rewrites, deletion vectors, RESTORE, no change, new statistics."""
    states = [_appended(draw, {}, 0)]
    for version in range(1, draw(st.integers(0, 8)) + 1):
        now, step = states[-1], draw(st.sampled_from(("append", "rewrite", "hide", "restore", "nothing", "statistics")))
        some = {path for path in now if draw(st.booleans())}
        if step == "restore":
            states.append(draw(st.sampled_from(states)))
        elif step in ("hide", "statistics"):
            changed = {path: _changed(draw, now[path], version, step) for path in some}
            states.append({**now, **changed})
        else:
            rest = {path: file for path, file in now.items() if step != "rewrite" or path not in some}
            states.append(rest if step == "nothing" else _appended(draw, rest, version))
    return states


def _changed(draw: st.DrawFn, file: LiveFile, version: int, step: str) -> LiveFile:
    if step == "statistics":
        return replace(file, tags={"v": str(version)})
    return replace(file, vector=_vector(f"{file.path}-{version}", draw(st.integers(1, 5))))


def _appended(draw: st.DrawFn, files: Files, version: int) -> Files:
    sizes = draw(st.lists(st.tuples(st.none() | st.integers(5, 50), st.integers(1, 999)), max_size=4))
    new = (_file(f"{version}-{number}", rows, size) for number, (rows, size) in enumerate(sizes))
    return {**files, **{file.path: file for file in new}}


def _all(files: Files) -> FileSum:
    return sum(map(sum_of, files.values()), FileSum())


@given(_histories(), st.data())
def test_every_file_is_counted_once(states: list[Files], data: st.DataObject) -> None:
    first, last = data.draw(st.sampled_from(states)), data.draw(st.sampled_from(states))
    effect, back = (framing_effect(_version(0, a), _version(1, b)) for a, b in ((first, last), (last, first)))
    assert effect.kept + effect.changed + effect.reloaded == effect.total == _all(last)
    assert effect.kept.files + effect.changed.files + effect.dropped.files == len(first)
    assert (back.kept, back.dropped, back.reloaded) == (effect.kept, effect.reloaded, effect.dropped)
    assert back.changed.files == effect.changed.files
    before, after = ({path: file.vector for path, file in files.items()} for files in (first, last))
    assert effect.kept.files == len(before.items() & after.items())
    assert effect.reloaded.files == len(after.keys() - before.keys())


@given(_histories())
def test_sizes_are_those_of_whole_versions(states: list[Files]) -> None:
    commits = []
    for version, (before, after) in enumerate(pairwise(states), 1):
        removed = [file for path, file in before.items() if after.get(path) != file]
        added = tuple(file for path, file in after.items() if before.get(path) != file)
        tombstones = tuple(Tombstone(file.path, file.vector, version, file.bytes, file.rows) for file in removed)
        commits.append(LoggedCommit(version, version, Actions(added, tombstones, info=CommitInfo("WRITE"))))
    assert list(table_sizes(_version(0, states[0]), commits)) == list(map(_all, states))


def _rows(stock: dict[str, int]) -> pa.Table:
    return pa.table({"ProductID": list(stock), "StockOnHand": pa.array(stock.values(), pa.int64())})


def test_a_refresh_keeps_files_that_still_exist(tmp_path: Path) -> None:
    """The four operations of the seed."""
    write_deltalake(tmp_path, _rows({"A": 1, "B": 2, "C": 3}))
    write_deltalake(tmp_path, _rows({"D": 4}), mode="append")
    DeltaTable(tmp_path).update(predicate="ProductID = 'C'", updates={"StockOnHand": "10"})
    DeltaTable(tmp_path).delete("ProductID = 'B'")
    snapshots = list(DeltaLog(str(tmp_path)).snapshots(range(4)))
    insert, update, delete = (framing_effect(before, after) for before, after in pairwise(snapshots))
    both = framing_effect(snapshots[1], snapshots[3])  # product D stays
    rows = [(e.kept.rows, e.reloaded.rows, e.dropped.rows) for e in (insert, update, delete, both)]
    assert rows == [(3, 1, 0), (1, 3, 3), (1, 2, 3), (1, 2, 3)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three appends, OPTIMIZE, a checkpoint, an append, RESTORE to the third append, VACUUM."""
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"id": [number, number + 10]}), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, pa.table({"id": [99]}), mode="append")
    DeltaTable(tmp_path).restore(2)
    DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    return tmp_path


@pytest.mark.parametrize(
    ("missing", "first"),
    [
        ((0, 1, 2), 3),  # a cleaned log begins at its checkpoint
        ((3,), 3),  # all versions can be read, but the actions of commit 3 are unknown
        ((1,), 3),  # versions 1 and 2 can't be read
    ],
)
def test_a_span_begins_after_the_last_gap(table: Path, missing: Sequence[int], first: int) -> None:
    for version in missing:
        commit_file(table, version).unlink()
    log = DeltaLog(str(table))
    for since_ms, expected in ((0, first), (log.time_ms(6), 6), (log.time_ms(7), 7)):
        start, commits = recent_commits(log, since_ms)
        assert [start.version, *(commit.version for commit in commits)] == list(range(expected, 8))


_SCHEMA = schema_string(column("id"))


def _log(folder: Path, written: Sequence[int], in_commit: Sequence[int] = (), **properties: str) -> DeltaLog:
    """A log whose commits were written at these seconds; the last ones have in-commit timestamps, in ms."""
    without = len(written) - len(in_commit)
    for version, seconds in enumerate(written):
        info: Action = {"timestamp": 7}
        if version >= without:
            info["inCommitTimestamp"] = in_commit[version - without]
        actions: list[Action] = [{"commitInfo": info}]
        if version == 0:
            actions += [PROTOCOL, metadata_action(_SCHEMA, **properties)]
        write_commit(folder, version, actions)
        os.utime(commit_file(folder, version), (seconds, seconds))
    return DeltaLog(str(folder))


def test_in_commit_timestamps_that_begin_late_do_not_mix_with_times_of_files(tmp_path: Path) -> None:
    """The older commits' files were copied, so their times are later than those of all newer commits."""
    log = _log(
        tmp_path,
        (9_000, 9_001, 9_002, 9_003, 9_004),
        (2_000_000, 2_500_000),
        **{
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "3",
            "delta.inCommitTimestampEnablementTimestamp": "2000000",
        },
    )
    assert [committed_by(log, time) for time in (1_999_999, 2_000_000, 2_400_000, 2_500_000)] == [None, 3, 3, 4]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(-1, 50))
def test_the_version_of_a_time_is_that_of_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], at: int
) -> None:
    log, time = _log(tmp_path_factory.mktemp("log"), [1_000 + step for step in steps]), (1_000 + at) * 1000
    times = [log.time_ms(version) for version in log.versions()]
    assert times == sorted(set(times))
    assert committed_by(log, time) == max((version for version, then in enumerate(times) if then <= time), default=None)


def test_a_time_in_a_gap_has_no_certain_version(tmp_path: Path) -> None:
    """Commit 2 is missing: until commit 3, the newest may be 1 or 2; then it is 3, which can't be reconstructed."""
    write_deltalake(tmp_path, pa.table({"id": [0]}))
    for version in range(1, 6):
        write_deltalake(tmp_path, pa.table({"id": [version]}), mode="append")
    DeltaTable(tmp_path, version=4).create_checkpoint()
    for version in range(6):
        os.utime(commit_file(tmp_path, version), (version + 1, version + 1))
    commit_file(tmp_path, 2).unlink()
    log = DeltaLog(str(tmp_path))
    assert log.versions() == (0, 1, 4, 5)
    assert [committed_by(log, time) for time in (1_999, 2_000, 2_001, 3_999, 4_000, 5_000)] == [0, 1, None, None, 3, 4]
