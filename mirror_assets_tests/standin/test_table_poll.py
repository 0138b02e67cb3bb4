"""Numbers: from 1, without a gap, and where processed files go (reference `landing-zone` §4.8 and §4.14)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mirror_assets.landing.names import landing_name
from mirror_assets.monitoring import TableState
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs, parquet


def test_waits_at_a_gap_and_says_for_which_number(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(3, pairs((3, "c")))
    publisher.land(4, pairs((4, "d")))
    status = publisher.poll()
    assert (status.state, status.error_code) == (TableState.REPLICATING, None)
    assert (status.applied_number, status.next_number, status.waiting_files) == (1, 2, 2)
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
    assert (status.state, status.applied_number, status.next_number) == (TableState.INITIALIZED, 0, 1)
    assert status.waiting_files == 1


@pytest.mark.parametrize(
    "name",
    ["1.parquet", "0000000000000000001.parquet", "_00000000000000000001.parquet", "00000000000000000001.csv"],
)
def test_other_names_are_not_taken(publisher: Publisher, name: str) -> None:
    publisher.declare()
    (publisher.folder() / name).write_bytes(parquet(pairs((1, "a"))))
    status = publisher.poll()
    assert (status.state, status.applied_number, status.waiting_files) == (TableState.INITIALIZED, 0, 0)


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


def test_pure_inserts_are_a_plain_append(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    before = publisher.files()
    publisher.land(2, pairs((1, "b")), [0])
    publisher.poll()
    assert before < publisher.files()
    assert len(publisher.files()) == 2


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


def test_many_files_are_one_commit(publisher: Publisher) -> None:
    publisher.declare()
    for number in range(1, 21):
        publisher.land(number, pairs((number % 3, "a")), [4])
    status = publisher.poll()
    assert (status.applied_number, status.mirror_rows) == (20, 3)
    assert publisher.delta().version() == 0


def test_a_batch_ends_where_memory_does(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.standin.table_poll._BATCH_BYTES", 1)
    publisher.declare()
    for number in range(1, 4):
        publisher.land(number, pairs((1, f"v{number}")), [4])
    assert publisher.poll().mirror_rows == 1
    assert publisher.delta().version() == 2
    assert bag(publisher.rows()) == bag(pairs((1, "v3")))
