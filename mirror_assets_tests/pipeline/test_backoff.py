"""Who fails, how long the table is left alone, and what a record of it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import EPOCH_ENDED, LOST_RACE
from mirror_assets.landing.failures import FailureRecord, read_failure
from mirror_assets.landing.format import Chunk, Loading
from mirror_assets.pipeline.backoff import note_failure, pause_left, unresolved_failure
from mirror_assets.pipeline.errors import SNAPSHOT_LOST, SOURCE_BROKE, TABLE_BUSY
from mirror_assets.source.losses import DATA_FILE_MISSING, FEED_MISSING, HISTORY_EXPIRED
from mirror_assets.zones.errors import STORE_FULL
from mirror_assets_tests.lab import TABLE, Lab, key
from mirror_assets_tests.zones.memory import MemoryStore

ONLY_A_RUN_SEES = (
    DATA_FILE_MISSING(table="shop.orders", uri="lake", file="2.parquet", version=2),
    HISTORY_EXPIRED(table="shop.orders", uri="lake", version=2, age_hours=200.0),
    FEED_MISSING(table="shop.orders", uri="lake", version=2),
    SNAPSHOT_LOST(
        table="shop.orders", loading=Loading(key(0, 2), Chunk(number=1, of=3, first=0, end=1)), why="vacuumed"
    ),
)
OTHERS = (
    SOURCE_BROKE(table="shop.orders", version=4, why="renamed"),
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


@pytest.mark.parametrize("error", ONLY_A_RUN_SEES, ids=lambda error: type(error).__name__)
def test_what_only_reading_shows_asks_for_a_rebuild(unspent: Lab, error: MirrorError) -> None:
    record = failed(unspent, error)
    assert (record.slice, record.rebuild, record.code) == (key(1, 2), error.what, error.code)


@pytest.mark.parametrize("error", OTHERS, ids=lambda error: type(error).__name__)
def test_what_the_sensor_sees_for_itself_asks_for_nothing(unspent: Lab, error: MirrorError) -> None:
    assert failed(unspent, error).rebuild is None


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
