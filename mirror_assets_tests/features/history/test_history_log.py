"""What the history's own log says is covered, and until when the next commit can be read. No Spark."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.errors import SettingError
from mirror_assets.features.history.errors import HISTORY_UNKNOWN, HistoryCode
from mirror_assets.features.history.history_log import APPLICATION, HistoryCommit, HistoryLog, parse_commit
from mirror_assets.features.history.with_dagster.history_check import history_deadline
from mirror_assets.verify.timeliness import check_retention
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.features.history.sources import Place
from mirror_assets_tests.source.handmade import commit_file


def test_the_application_is_that_of_histories_that_exist() -> None:
    assert APPLICATION == "mirror_assets/history", "another one would begin each history again"


def commit(kept: HistoryCommit) -> bytes:
    """The commit of a slice, as Spark writes it."""
    info = {"operation": "WRITE", "operationMetrics": {"numOutputRows": str(kept.rows)}, "userMetadata": kept.text}
    txn = {"appId": APPLICATION, "version": kept.generation, "lastUpdated": 1}
    return b"\n".join(json.dumps(action).encode() for action in ({"commitInfo": info}, {"txn": txn}))


def write(folder: Path, kept: HistoryCommit) -> None:
    """Add a slice to a history, without Spark."""
    write_deltalake(
        folder,
        pa.table({"_commit_version": pa.array([kept.last], pa.int64())}),
        mode="append",
        commit_properties=CommitProperties(
            app_transactions=[Transaction(APPLICATION, kept.generation)], custom_metadata={"userMetadata": kept.text}
        ),
    )


@given(
    st.integers(1, 2**40), st.text(max_size=20), st.integers(0, 2**40), st.integers(-1, 2**40), st.integers(0, 2**40)
)
def test_a_slices_commit_says_all_of_it(generation: int, table_id: str, first: int, last: int, rows: int) -> None:
    kept = HistoryCommit(generation, table_id, first, last, "attempt", rows)
    assert parse_commit(commit(kept)) == kept


def test_commits_of_others_keep_nothing() -> None:
    kept = HistoryCommit(1, "id", 0, 4, "a")
    assert parse_commit(commit(kept).replace(APPLICATION.encode(), b"other")) is None
    assert parse_commit(b'{"commitInfo":{"operation":"OPTIMIZE"}}\n') is None
    assert parse_commit(commit(kept).replace(b"userMetadata", b"other")) is None


def test_before_the_first_slice_nothing_is_kept_and_nothing_made(tmp_path: Path) -> None:
    assert HistoryLog("t", str(tmp_path / "history")).newest() is None
    assert list(tmp_path.iterdir()) == []


def test_the_newest_slice_is_found_behind_commits_of_others(tmp_path: Path) -> None:
    first, second = HistoryCommit(1, "id", 0, 4, "a"), HistoryCommit(2, "id", 5, 5, "b")
    write(tmp_path, first)
    write(tmp_path, second)
    log = HistoryLog("t", str(tmp_path))
    assert log.newest() == second
    assert log.is_newest(second)
    write_deltalake(tmp_path, pa.table({"_commit_version": pa.array([], pa.int64())}), mode="append")
    assert log.newest() == second
    assert not log.is_newest(second)
    assert (log.commit(1), log.commit(2), log.commit(3)) == (first, second, None)


def test_a_log_that_lost_its_slices_knows_the_generation_and_says_what_to_do(tmp_path: Path) -> None:
    for generation in (1, 2, 3):
        write(tmp_path, HistoryCommit(generation, "id", generation, generation, "a"))
    write_deltalake(tmp_path, pa.table({"_commit_version": pa.array([9], pa.int64())}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(3):
        commit_file(tmp_path, version).unlink()
    with raises_row(HISTORY_UNKNOWN, match="--skip-to VERSION") as unknown:
        HistoryLog("t", str(tmp_path)).newest()
    assert unknown.value.generation == 3


def test_another_table_in_the_historys_folder_is_left_alone(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    with raises(SettingError, HistoryCode.HISTORY_UNFIT, match=r"history.path"):
        HistoryLog("t", str(tmp_path)).newest()
    assert DeltaTable(tmp_path).version() == 0


def test_a_commit_that_waits_has_as_long_as_the_source_keeps_its_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.create()
    context = place.context()
    assert not history_deadline(context, time.time()).waits
    write(Path(context.history.uri), HistoryCommit(1, context.source.state().table_id, 0, 0, "a"))
    assert not history_deadline(context, time.time()).waits
    place.append(10)
    deadline = history_deadline(context, time.time() + 5 * 86_400)
    assert (deadline.version, deadline.waits) == (1, True)
    late, early = (check_retention(deadline, days * 86_400, "history_retention") for days in (3, 1))
    assert (late.check, late.passed, early.passed) == ("history_retention", False, True)
    assert "then its rows are lost to the history; to keep it for longer: ALTER TABLE" in late.message
