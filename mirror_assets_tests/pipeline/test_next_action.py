"""What a table needs: how long it is left alone after failures, and what a quick look must not overlook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE
from mirror_assets.landing.errors import EPOCH_ENDED, LOST_RACE
from mirror_assets.landing.format import Chunk, Loading
from mirror_assets.landing.rebuild import RebuildStep, begin_rebuild
from mirror_assets.landing.run_records import FailureRecord, read_failure, record_failure
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE, TABLE_BUSY
from mirror_assets.pipeline.liveness import now_ms
from mirror_assets.pipeline.next_action import (
    Land,
    QuietMark,
    Rest,
    is_quiet,
    next_action,
    note_failure,
    pause_left,
    unresolved_failure,
    zone_state,
)
from mirror_assets.pipeline.plan import no_boundaries, plan_table
from mirror_assets.pipeline.table_health import check_not_failing, running_rebuild
from mirror_assets.source import log as source_log
from mirror_assets.source.errors import DATA_FILE_MISSING
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.source_files import commit_path
from mirror_assets.zones import Store
from mirror_assets.zones.errors import STORE_FULL
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.memory import MemoryStore

ONLY_A_RUN_SEES = (
    DATA_FILE_MISSING(table="shop.orders", uri="lake", file="2.parquet", version=2),
    SNAPSHOT_LOST(
        table="shop.orders", loading=Loading(key(0, 2), Chunk(number=1, of=3, first=0, end=1)), why="vacuumed"
    ),
)
OTHERS = (
    SOURCE_BROKE(table="shop.orders", version=4, why="renamed", undo=""),
    EPOCH_ENDED(table="shop.orders", epoch=1),
    LOST_RACE(table="shop.orders", key="1"),
)


def failed(lab: Lab, error: MirrorError) -> FailureRecord:
    """The record after another failure with this error."""
    note_failure(lab.context, error, pytest.fail, key(1, 2))
    found = read_failure(lab.store, TABLE)
    assert found is not None
    return found


@pytest.fixture
def unspent(tmp_path: Path) -> Lab:
    """A table of which nothing is there yet; nothing of it starts Spark."""
    made = Lab(None, tmp_path)
    made.configure()
    return made


def test_the_pause_doubles_with_each_failure_up_to_an_hour() -> None:
    pauses = [pause_left(count, 1000.0, 1000.0) for count in range(10)]
    assert pauses == [0, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert pause_left(1, 1000.0, 1010.0) == 20
    assert pause_left(1, 1000.0, 9999.0) == 0
    assert pause_left(5000, 0.0, 0.0) == 3600
    assert pause_left(1, ended=1_000_000.0, now=0.0) == 30, "a clock that is ahead makes no pause longer"


@pytest.mark.parametrize("error", [*ONLY_A_RUN_SEES, *OTHERS], ids=lambda error: error.code.value)
def test_only_what_reading_alone_shows_asks_for_a_rebuild(unspent: Lab, error: MirrorError) -> None:
    record, rebuild = failed(unspent, error), error.what if error in ONLY_A_RUN_SEES else None
    assert (record.slice, record.rebuild, record.code) == (key(1, 2), rebuild, error.code)


def test_failures_add_up_and_a_reason_to_rebuild_stays(unspent: Lab) -> None:
    failed(unspent, ONLY_A_RUN_SEES[0])
    record = failed(unspent, LOST_RACE(table="shop.orders", key="1"))
    assert (record.count, record.rebuild) == (2, ONLY_A_RUN_SEES[0].what)


def test_a_table_that_is_busy_has_not_failed(unspent: Lab) -> None:
    note_failure(unspent.context, TABLE_BUSY(table="shop.orders", who="run 1 works on it"), pytest.fail)
    assert read_failure(unspent.store, TABLE) is None


def test_a_record_that_cannot_be_read_counts_for_nothing_and_is_replaced(unspent: Lab) -> None:
    unspent.store.create(TABLE.failure_record, b"{")
    assert unresolved_failure(unspent.context, None, None) is None
    assert failed(unspent, OTHERS[0]).count == 1


def test_a_failure_that_cannot_be_recorded_is_reported(unspent: Lab) -> None:
    class Full(MemoryStore):
        def create(self, path: str, data: bytes) -> str:
            raise STORE_FULL(path=f"{path} ({len(data)} bytes)")

    told: list[str] = []
    assert not note_failure(replace(unspent.context, store=Full()), OTHERS[0], told.append)
    assert "the failure can't be recorded" in told[0]


_OUTAGE = RetryError("the store did not answer", "run again", code=ErrorCode.STORE_UNAVAILABLE)


def recorded(lab: Lab) -> FailureRecord | None:
    return read_failure(lab.store, TABLE)


@pytest.fixture
def quiet(lab: Lab) -> Lab:
    """A table of which all has landed, and that a run could not look at for a moment."""
    lab.mirror()
    note_failure(lab.context, _OUTAGE, pytest.fail)
    return lab


def not_failing(lab: Lab) -> bool:
    return check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset())).passed


def test_a_table_with_nothing_left_to_do_does_not_fail_and_looking_at_it_changes_nothing(quiet: Lab) -> None:
    assert not_failing(quiet)
    assert recorded(quiet) is not None, "who only looks writes nothing"


def test_the_next_run_forgets_a_failure_that_is_over(quiet: Lab) -> None:
    assert quiet.mirror() == []
    assert recorded(quiet) is None


def test_the_next_complete_look_of_a_scheduler_forgets_it(quiet: Lab) -> None:
    action = next_action(quiet.context, no_boundaries, time.time() + 7200)
    assert isinstance(action, Rest)
    assert recorded(quiet) is None


def test_a_failure_of_a_table_with_pending_commits_stands(quiet: Lab) -> None:
    quiet.change()
    assert not not_failing(quiet)
    assert isinstance(next_action(quiet.context, no_boundaries, time.time() + 7200), Land)
    assert recorded(quiet) is not None


def _rebuild_that_fails(lab: Lab, times: int) -> None:
    """A run needs a rebuild, and this many runs fail."""
    for n in range(times):
        because = "a data file is gone" if n == 0 else None
        message = "shop.orders: the file x.parquet is gone. Next: rebuild the table."
        record_failure(lab.store, TABLE, ErrorCode.DATA_FILE_MISSING, message, now_ms(), None, because)


def test_a_rebuild_that_fails_as_well_is_a_failing_table_from_the_second_failure_on(lab: Lab) -> None:
    lab.mirror()
    lab.change()
    _rebuild_that_fails(lab, 1)
    assert not_failing(lab), "it waits for its rebuild"
    _rebuild_that_fails(lab, 1)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert found.message == "2 runs of shop.orders failed: the rebuild fails as well: the file x.parquet is gone."
    assert found.next_step.startswith("restore the file, or repair the source")
    assert found.metadata["code"] == "data_file_missing"


def test_earlier_failures_are_not_those_of_a_rebuild_that_a_person_has_started(lab: Lab) -> None:
    lab.mirror()
    lab.change()
    for _ in range(3):
        record_failure(lab.store, TABLE, ErrorCode.CHECKS_FAILED, "a NULL key.", now_ms() - 60_000)
    drive(begin_rebuild(TABLE, None), lab.store)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert "the rebuild fails" not in found.message
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is RebuildStep.STAGING
    record_failure(lab.store, TABLE, ErrorCode.CHECKS_FAILED, "a NULL key.", now_ms() + 1000)
    found = check_not_failing(lab.context, zone_state(lab.context), lambda: plan_table(lab.context, frozenset()))
    assert "the rebuild fails as well: a NULL key." in found.message
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is None


def test_a_rebuild_whose_step_takes_hours_hides_no_lag(lab: Lab) -> None:
    lab.mirror()
    assert running_rebuild(lab.context, zone_state(lab.context), time.time()) is None
    drive(begin_rebuild(TABLE, None), lab.store)
    assert running_rebuild(lab.context, zone_state(lab.context), time.time() + 5 * 3600) is RebuildStep.STAGING
    assert running_rebuild(lab.context, zone_state(lab.context), time.time() + 7 * 3600) is None


@pytest.fixture(params=["listed", "asked for by name"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of four commits, whose log is short; or taken for a long one."""
    if request.param != "listed":
        monkeypatch.setattr(source_log, "_SHORT_LOG", 0)
    for number in range(4):
        write_deltalake(tmp_path / "orders", pa.table({"id": [number]}), mode="append")
    return tmp_path / "orders"


def marked(store: Store, source: Path) -> QuietMark:
    """The mark of a table whose four commits are covered, as far as a look can tell."""
    etag = store.create(TABLE.manifest, b"a manifest")
    tip = DeltaLog(str(source)).tip_mark(3)
    assert tip is not None
    return QuietMark(etag, None, tip)


def commit(source: Path) -> None:
    write_deltalake(source, pa.table({"id": [9]}), mode="append")


def recreate(source: Path) -> None:
    shutil.rmtree(source)
    for number in range(4):
        write_deltalake(source, pa.table({"id": [number]}), mode="append")


def restore_from_backup(source: Path) -> None:
    (source / commit_path(3)).unlink()


def rewrite(source: Path) -> None:
    os.utime(source / commit_path(3), ns=(1, 1))


def begin_one(store: Store) -> None:
    drive(begin_rebuild(TABLE), store)


def land(store: Store) -> None:
    found = store.read(TABLE.manifest, 100)
    store.replace(TABLE.manifest, found.data, found.etag)


def drop(store: Store) -> None:
    store.delete_tree(TABLE.folder)


@pytest.mark.parametrize("event", [commit, recreate, restore_from_backup, rewrite, shutil.rmtree])
def test_whatever_happens_to_the_source_ends_the_quiet(source: Path, event: Callable[[Path], None]) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))
    assert is_quiet(mark, TABLE, store, log)
    event(source)
    assert not is_quiet(mark, TABLE, store, log)


@pytest.mark.parametrize("event", [begin_one, land, drop])
def test_whatever_happens_to_the_landing_zone_ends_it(source: Path, event: Callable[[Store], None]) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))
    event(store)
    assert not is_quiet(mark, TABLE, store, log)


def test_a_rebuild_that_moves_ends_the_quiet(source: Path) -> None:
    store = MemoryStore()
    mark = marked(store, source)
    drive(begin_rebuild(TABLE), store)
    info = store.head(TABLE.rebuild_record)
    assert info is not None
    later, log = QuietMark(mark.manifest_etag, info.etag, mark.tip), DeltaLog(str(source))
    assert is_quiet(later, TABLE, store, log)
    store.delete(TABLE.rebuild_record)
    assert not is_quiet(later, TABLE, store, log)


def test_checkpoints_and_what_writers_put_beside_commits_are_no_news(source: Path) -> None:
    store = MemoryStore()
    mark = marked(store, source)
    DeltaTable(source).create_checkpoint()
    (source / "_delta_log" / f"{3:020d}.crc").write_text("{}")
    assert is_quiet(mark, TABLE, store, DeltaLog(str(source)))


def test_a_listing_sees_behind_a_hole(tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(tmp_path / "orders", pa.table({"id": [number]}), mode="append")
    newer = tmp_path / "orders" / commit_path(5)
    hidden = newer.rename(tmp_path / "hidden")
    (tmp_path / "orders" / commit_path(4)).unlink()
    store = MemoryStore()
    mark = marked(store, tmp_path / "orders")
    hidden.rename(newer)
    assert not is_quiet(mark, TABLE, store, DeltaLog(str(tmp_path / "orders")))


def test_no_mark_is_made_of_a_version_that_is_not_the_newest(source: Path) -> None:
    log = DeltaLog(str(source))
    assert log.tip_mark(2) is None
    assert log.tip_mark(4) is None
    shutil.rmtree(source)
    assert log.tip_mark(3) is None


def test_a_source_that_does_not_answer_is_not_quiet(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    mark, log = marked(store, source), DeltaLog(str(source))

    def broken(_: object) -> None:
        raise SOURCE_UNAVAILABLE(uri=str(source), why="no route")

    monkeypatch.setattr(log, "is_still_tip", broken)
    with raises_row(SOURCE_UNAVAILABLE):
        is_quiet(mark, TABLE, store, log)


def test_it_costs_two_requests_of_onelake(onelake: LoopbackOneLake, source: Path) -> None:
    item = onelake.new_item()
    store = loopback_store(onelake, item)
    item.make_folder(TABLE.folder)
    mark = marked(store, source)
    onelake.log.reset()
    assert is_quiet(mark, TABLE, store, DeltaLog(str(source)))
    assert onelake.log.counts() == {Operation.READ: 1, Operation.HEAD: 1}
    assert sum(record.bytes_out for record in onelake.log.storage if record.status == 304) == 0


def test_it_needs_no_spark() -> None:
    command = "import sys; import mirror_assets.pipeline.next_action; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
