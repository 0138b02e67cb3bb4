"""The mirror's Delta table: its counters live in the log, and it stays small."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mirror_assets.standin.mirror_columns import first_columns
from mirror_assets.standin.mirror_table import Applied, MirrorTable
from mirror_assets.standin.net_changes import NetChanges
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs

_COLUMNS = first_columns(pairs((1, "a")).schema)


def test_counters_are_read_back_from_the_log_and_its_checkpoints(publisher: Publisher) -> None:
    path = publisher.mirror / "dbo" / "t"
    mirror = MirrorTable(path, "epoch")
    assert (mirror.exists, mirror.applied, mirror.columns, mirror.rows) == (False, Applied(), None, 0)
    for number in (1, 2):
        mirror.apply(NetChanges(pairs((1, "a")), None), _COLUMNS, Applied(number, number * 10, number * 100))
    publisher.delta().create_checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    again = MirrorTable(path, "epoch")
    assert (again.exists, again.applied, again.rows) == (True, Applied(2, 20, 200), 2)
    assert again.columns == _COLUMNS


def test_another_epoch_is_no_table(publisher: Publisher) -> None:
    path = publisher.mirror / "dbo" / "t"
    MirrorTable(path, "epoch").apply(NetChanges(pairs((1, "a")), None), _COLUMNS, Applied(1, 1, 1))
    assert not MirrorTable(path, "next").exists
    assert MirrorTable(path, "next").applied == Applied()


def test_small_files_are_merged_now_and_then(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.standin.mirror_table._TIDY_EVERY", 5)
    publisher.declare()
    for number in range(1, 6):
        publisher.land(number, pairs((number, "a")))
        publisher.poll()
    assert len(publisher.files()) == 1
    assert bag(publisher.rows()) == bag(pairs(*[(number, "a") for number in range(1, 6)]))
    publisher.land(6, pairs((2, None)), [2])
    assert publisher.poll().mirror_rows == 4


def test_large_results_are_cut_into_files(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.standin.mirror_table._FILE_ROWS", 10)
    publisher.declare()
    rows = pa.table({"k": list(range(25)), "v": ["a"] * 25})
    publisher.land(1, rows)
    publisher.poll()
    assert len(publisher.files()) == 3
    publisher.land(2, pa.table({"k": [0, 24], "v": ["b", "b"]}), [1, 2])
    assert publisher.poll().mirror_rows == 24
    assert sorted(publisher.rows()["k"].to_pylist()) == list(range(24))
