"""Tables come and go: schemas, dropped and recreated folders, gaps in numbers, two replicators at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from mirror_assets.errors import ErrorCode, RetryError
from mirror_assets.landing.names import TableName, landing_name
from mirror_assets.monitoring import TableState
from mirror_assets.standin.errors import MIRROR_BUSY
from mirror_assets.standin.mirror_layout import MirrorLayout
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import PATH_MISSING, STORE_DENIED, STORE_UNAVAILABLE
from mirror_assets.zones.store import FileInfo
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.standin.publisher import TABLE, Publisher, bag, pairs


def test_a_mirror_begins_empty(publisher: Publisher) -> None:
    assert publisher.replicator().status() == ()
    assert publisher.replicator().table(TABLE) is None


def test_tables_with_and_without_schema(publisher: Publisher) -> None:
    for name in ("t", "sales.t", "sales.é u"):
        publisher.declare(name=name)
        publisher.land(1, pairs((1, name)), name=name)
    (publisher.zone / "_scratchPad" / "t").mkdir(parents=True)
    (publisher.zone / "sales.schema" / "_x").mkdir()
    statuses = publisher.replicator().poll()
    assert [str(status.name) for status in statuses] == ["sales.t", "sales.é u", "t"]
    assert [status.mirror_path for status in statuses] == [
        publisher.mirror / "sales" / "t",
        publisher.mirror / "sales" / "é u",
        publisher.mirror / "dbo" / "t",
    ]
    assert publisher.rows("sales.é u")["v"].to_pylist() == ["sales.é u"]


def test_deleted_folder_drops_the_table(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    publisher.delete()
    status = publisher.replicator().table(TABLE)
    assert status is not None
    assert not status.folder_present, "seen before the next poll"
    assert publisher.replicator().poll() == ()
    assert publisher.replicator().table(TABLE) is None
    assert not (publisher.mirror / "dbo" / "t").exists()


def _works_once(publisher: Publisher) -> bool:
    """Whether a poll has something to do; it must leave nothing to do."""
    due = publisher.replicator().has_work()
    publisher.replicator().poll()
    assert not publisher.replicator().has_work()
    return due


def test_has_work_while_a_poll_would_change_something(publisher: Publisher) -> None:
    assert not publisher.replicator().has_work()
    publisher.declare()
    assert _works_once(publisher)
    publisher.land(1, pairs((1, "a")))
    assert _works_once(publisher)
    publisher.land(3, pairs((3, "c")))
    assert not _works_once(publisher), "file 2 is missing"
    publisher.land(2, pairs((2, "b")))
    assert _works_once(publisher)
    bad = publisher.land_bytes(4, b"no Parquet")
    assert _works_once(publisher)
    bad.unlink()
    publisher.land(4, pairs((4, "d")))
    assert _works_once(publisher), "what it failed on was replaced"
    publisher.recreate()
    assert _works_once(publisher)
    publisher.delete()
    assert _works_once(publisher)


@pytest.mark.parametrize("polled_between", [True, False])
def test_recreated_folder_is_a_new_table(publisher: Publisher, polled_between: bool) -> None:
    publisher.declare()
    for number in (1, 2, 3):
        publisher.land(number, pairs((number, "old")))
    publisher.poll()
    publisher.delete()
    if polled_between:
        publisher.replicator().poll()
    publisher.declare()
    publisher.land(1, pairs((9, "new")))
    status = publisher.poll()
    assert (status.state, status.applied_number, status.processed_rows) == (TableState.REPLICATING, 1, 1)
    assert bag(publisher.rows()) == bag(pairs((9, "new")))


def test_recreated_folder_without_metadata_is_gone_until_it_has_one(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "old")))
    publisher.poll()
    publisher.delete()
    publisher.folder().mkdir()
    assert publisher.replicator().poll() == ()
    assert not (publisher.mirror / "dbo" / "t").exists()


def test_folder_recreated_while_it_is_polled_loses_nothing(publisher: Publisher) -> None:
    """The old epoch's number must not make the new epoch's files look processed."""

    class Recreating(LocalStore):
        def list(self, folder: str) -> list[FileInfo]:
            if folder == "t":
                publisher.recreate()
                for number in (1, 2):
                    publisher.land(number, pairs((number, "new")))
            return super().list(folder)

    publisher.declare()
    for number in (1, 2, 3):
        publisher.land(number, pairs((number, "old")))
    publisher.poll()
    LocalReplicator(Recreating(publisher.zone), publisher.mirror).poll()
    assert publisher.landed() == ["00000000000000000001.parquet", "00000000000000000002.parquet"]
    publisher.poll()
    assert bag(publisher.rows()) == bag(pairs((1, "new"), (2, "new")))


def test_one_bad_table_stops_no_other(publisher: Publisher) -> None:
    for name in ("a", "b", "c", "d"):
        publisher.declare(name=name)
        publisher.land(1, pairs((1, "x")), name=name)
    publisher.land_bytes(1, b"", name="a")
    publisher.poll("b")
    (publisher.mirror / "dbo" / "b" / "_delta_log" / f"{0:020d}.json").write_text("{")
    publisher.land(2, pairs((2, "x")), name="b")
    (publisher.mirror / "_status" / "c.json").write_text("{}")
    statuses = {str(status.name): status for status in publisher.replicator().poll()}
    assert [statuses[name].state for name in "abc"] == [TableState.FAILED] * 3
    assert [statuses[name].error_code for name in "abc"] == ["file_empty", "mirror_unreadable", "mirror_unreadable"]
    assert (statuses["d"].state, statuses["d"].mirror_rows) == (TableState.REPLICATING, 1)


def test_lost_status_file_is_made_again_from_the_mirror(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pairs((2, "b")))
    before = publisher.poll()
    (publisher.mirror / "_status" / "t.json").unlink()
    after = publisher.poll()
    assert (after.applied_number, after.processed_rows, after.mirror_rows) == (2, 2, 2)
    assert after.processed_bytes == before.processed_bytes
    publisher.land(3, pairs((3, "c")))
    assert publisher.poll().mirror_rows == 3


def test_mirror_table_removed_by_hand_is_not_half_made_again(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    MirrorLayout(publisher.mirror).drop(TABLE)
    publisher.land(2, pairs((2, "b")))
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, "mirror_lost", 1)
    publisher.recreate()
    publisher.land(1, pairs((1, "a")))
    assert publisher.poll().state is TableState.REPLICATING


def test_two_folders_of_one_mirror_table(publisher: Publisher) -> None:
    publisher.declare(name="t")
    publisher.land(1, pairs((1, "first")), name="t")
    publisher.poll()
    publisher.declare(name="dbo.t")
    publisher.land(1, pairs((2, "second")), name="dbo.t")
    assert publisher.poll("dbo.t").error_code == "name_taken"
    assert publisher.poll("t").mirror_rows == 1
    publisher.recreate("dbo.t")
    assert publisher.poll("dbo.t").error_code == "name_taken"
    assert publisher.poll("t").state is TableState.REPLICATING
    publisher.delete("dbo.t")
    assert publisher.poll("t").state is TableState.REPLICATING, "dropping the second leaves the first one's table"
    assert publisher.rows("t")["v"].to_pylist() == ["first"]
    publisher.declare(name="dbo.t")
    publisher.land(1, pairs((2, "second")), name="dbo.t")
    publisher.delete("t")
    publisher.poll("dbo.t")
    assert publisher.poll("dbo.t").state is TableState.REPLICATING
    assert publisher.rows("dbo.t")["v"].to_pylist() == ["second"]


def test_a_second_replicator_fails_while_the_mirror_is_locked(publisher: Publisher) -> None:
    publisher.declare()
    with MirrorLayout(publisher.mirror).locked(), raises_row(MIRROR_BUSY) as caught:
        publisher.replicator().poll()
    assert isinstance(caught.value, RetryError)
    assert caught.value.code is ErrorCode.TABLE_BUSY
    assert publisher.replicator().poll(), "the lock is free again"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (STORE_UNAVAILABLE(path="t", why="timeout"), TableState.REPLICATING),
        (PATH_MISSING(path="t/_metadata.json"), TableState.REPLICATING),
        (STORE_DENIED(path="t", why="403"), TableState.FAILED),
    ],
)
def test_store_that_fails_is_tried_again(publisher: Publisher, error: Exception, state: TableState) -> None:
    class Failing(LocalStore):
        def list(self, folder: str) -> list[FileInfo]:
            if folder == "t":
                raise error
            return super().list(folder)

    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    LocalReplicator(Failing(publisher.zone), publisher.mirror).poll()
    status = publisher.replicator().table(TABLE)
    assert status is not None
    assert (status.state, status.message) == (state, str(error))
    assert publisher.poll().message is None


def test_a_store_that_is_not_on_this_machine(publisher: Publisher) -> None:
    class Remote(LocalStore):
        def local_path(self, path: str) -> None:  # type: ignore[override]  # noqa: ARG002, the store's signature
            return None

    publisher.declare()
    for number in (1, 2):
        publisher.land(number, pairs((1, f"v{number}")), [4])
    publisher.land_bytes(3, b"broken")
    (status,) = LocalReplicator(Remote(publisher.zone), publisher.mirror).poll()
    assert (status.error_code, status.applied_number) == ("file_invalid", 2)
    assert bag(publisher.rows()) == bag(pairs((1, "v2")))
    assert publisher.landed(folder="_ProcessedFiles") == ["00000000000000000001.parquet"]


def test_waits_at_a_gap_and_says_for_which_number(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(3, pairs((3, "c")))
    publisher.land(4, pairs((4, "d")))
    status = publisher.poll()
    assert (status.state, status.error_code) == (TableState.REPLICATING, None)
    assert (status.applied_number, status.waiting_files) == (1, 2)
    assert status.message == "waits for landing file 2: 2 later files wait after the gap"
    publisher.land(2, pairs((2, "b")))
    status = publisher.poll()
    assert (status.applied_number, status.waiting_files, status.message) == (4, 0, None)
    assert bag(publisher.rows()) == bag(pairs((1, "a"), (2, "b"), (3, "c"), (4, "d")))


def test_starts_at_one(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(0, pairs((0, "zero")))
    publisher.land(2, pairs((2, "b")))
    status = publisher.poll()
    assert (status.state, status.applied_number) == (TableState.INITIALIZED, 0)
    assert status.waiting_files == 1


def test_processed_files_move_away_except_the_last(publisher: Publisher) -> None:
    publisher.declare()
    for number in (1, 2, 3):
        publisher.land(number, pairs((number, "a")))
    publisher.poll()
    assert publisher.landed() == [landing_name(3)]
    assert publisher.landed(folder="_ProcessedFiles") == [landing_name(1), landing_name(2)]
    publisher.land(5, pairs((5, "a")))
    publisher.poll()
    assert publisher.landed() == [landing_name(3), landing_name(5)], "the last applied file stays, gap or not"


def test_a_number_used_again_is_not_read_again(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pairs((2, "b")))
    publisher.poll()
    publisher.land(1, pairs((9, "again")))
    publisher.land(2, pairs((9, "over")))
    assert publisher.poll().mirror_rows == 2


def test_counters_count_operations_not_rows(publisher: Publisher) -> None:
    publisher.declare()
    first = publisher.land(1, pairs((1, "a")))
    second = publisher.land(2, pairs((1, "b"), (1, "c")), [1, 2])
    size = first.stat().st_size + second.stat().st_size
    status = publisher.poll()
    assert (status.processed_rows, status.processed_bytes, status.mirror_rows) == (3, size, 0)
    assert status.last_sync is not None
    assert publisher.poll().last_sync == status.last_sync, "a poll without files is no sync"


def test_a_change_rewrites_only_the_files_that_hold_its_key(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (11, "a")))
    publisher.poll()
    untouched = publisher.files()
    publisher.land(2, pairs((2, "a"), (12, "a")))
    publisher.poll()
    touched = publisher.files() - untouched
    publisher.land(3, pairs((2, "b")), [1])
    publisher.poll()
    assert untouched < publisher.files()
    assert not touched & publisher.files()
    assert bag(publisher.rows()) == bag(pairs((1, "a"), (11, "a"), (12, "a"), (2, "b")))


def test_a_zero_row_file_makes_an_empty_table(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs().cast(pa.schema([("k", pa.int64()), ("v", pa.string())])))
    status = publisher.poll()
    assert (status.state, status.applied_number, status.mirror_rows) == (TableState.REPLICATING, 1, 0)
    assert publisher.rows().schema.names == ["k", "v"]
    publisher.land(2, pairs(), [])
    publisher.land(3, pairs((1, "a")), [1])
    assert publisher.poll().mirror_rows == 1


@pytest.mark.parametrize(("batch_bytes", "version"), [(1 << 20, 0), (1, 19)], ids=["all in memory", "one by one"])
def test_a_commit_has_as_many_files_as_fit_into_memory(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, batch_bytes: int, version: int
) -> None:
    monkeypatch.setattr("mirror_assets.standin.replicator._BATCH_BYTES", batch_bytes)
    publisher.declare()
    for number in range(1, 21):
        publisher.land(number, pairs((number % 3, f"v{number}")), [4])
    assert publisher.poll().applied_number == 20
    assert publisher.delta().version() == version
    assert bag(publisher.rows()) == bag(pairs((0, "v18"), (1, "v19"), (2, "v20")))


@pytest.mark.parametrize(("name", "rival"), [("t", "dbo.t"), ("dbo.t", "t"), ("s.t", None)])
def test_rival(tmp_path: Path, name: str, rival: str | None) -> None:
    layout = MirrorLayout(tmp_path)
    found = layout.rival(TableName.parse(name))
    assert found == (TableName.parse(rival) if rival else None)
    if found:
        assert layout.table(found) == layout.table(TableName.parse(name))
