"""The watch sees what a replicator must never see."""

from __future__ import annotations

import pytest

from mirror_assets.landing.format import SliceRecord
from mirror_assets.landing.names import landing_name
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.worlds.faults.bench import Bench
from mirror_assets_tests.worlds.faults.scenarios import staged


@pytest.fixture
def record(bench: Bench) -> SliceRecord:
    """Three parts, staged."""
    return staged(bench, 7, 3)


def land(bench: Bench, record: SliceRecord, part: int, number: int, share: float = 1.0) -> None:
    """Put a part, or the beginning of it, under a landing file's name."""
    data = bench.item.read(record.folder.part(record.parts[part].name))
    bench.item.write(f"{TABLE.folder}/{landing_name(number)}", data[: int(len(data) * share)])
    bench.watch.look()


def test_parts_in_their_order_are_right_wherever_they_go_afterwards(bench: Bench, record: SliceRecord) -> None:
    for part in range(3):
        land(bench, record, part, part + 1)
        bench.consume()
        bench.watch.look()
    assert bench.watch.wrong == []


def test_half_a_file_is_seen(bench: Bench, record: SliceRecord) -> None:
    land(bench, record, 0, 1, share=0.5)
    assert bench.watch.wrong == [f"{landing_name(1)} is partial, or nobody's"]


def test_another_part_is_seen(bench: Bench, record: SliceRecord) -> None:
    land(bench, record, 1, 1)
    assert bench.watch.wrong == [f"{landing_name(1)} holds what belongs to 2"]


def test_a_gap_is_seen(bench: Bench, record: SliceRecord) -> None:
    land(bench, record, 0, 1)
    land(bench, record, 2, 3)
    assert len(bench.watch.wrong) == 1


def test_a_number_that_comes_back_is_seen(bench: Bench, record: SliceRecord) -> None:
    for part in range(2):
        land(bench, record, part, part + 1)
    bench.consume()
    bench.watch.look()
    land(bench, record, 0, 1)
    assert len(bench.watch.wrong) == 1
