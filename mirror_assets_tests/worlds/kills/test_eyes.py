"""What the eyes take for wrong."""

from __future__ import annotations

import io
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.state import CommitPosition
from mirror_assets_tests.landing.staging import INCARNATION, hex_id, part_bytes, receipt_for
from mirror_assets_tests.worlds.kills.eyes import Eyes, is_whole

RECEIPT = receipt_for(CommitPosition(1, INCARNATION, 1, 1, -1), SliceKey(1, 0, 7), hex_id("one"))


@pytest.fixture(scope="module")
def whole() -> bytes:
    """A landing file as Spark writes it."""
    return part_bytes(RECEIPT, 0)


@given(st.lists(st.integers(1, 6), max_size=6))
def test_only_one_number_after_another_is_right(numbers: list[int]) -> None:
    eyes = Eyes()
    for number in numbers:
        eyes.appeared(number, None)
    in_order = all(after == before + 1 for before, after in pairwise([0, *numbers]))
    assert (eyes.wrong == []) == in_order


def test_a_whole_file_is_right_and_no_part_of_it_is(whole: bytes) -> None:
    assert is_whole(whole)
    for size in range(0, len(whole), 7):
        assert not is_whole(whole[:size])


def test_a_file_without_a_receipt_is_not_whole(whole: bytes) -> None:
    foreign = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(whole)).replace_schema_metadata(None), foreign)
    assert not is_whole(foreign.getvalue())


def test_a_partial_file_is_reported(whole: bytes) -> None:
    eyes = Eyes()
    eyes.appeared(1, whole[:-1])
    assert eyes.wrong == ["1 was visible before it was whole"]


def test_a_changed_or_unseen_file_is_reported_at_the_end(whole: bytes) -> None:
    eyes = Eyes()
    eyes.appeared(1, whole)
    eyes.recognise(1, whole)
    assert eyes.wrong == []
    eyes.recognise(1, part_bytes(RECEIPT, 1))
    eyes.recognise(2, whole)
    assert eyes.wrong == ["1 is not what it was when it landed", "2 was never seen to land"]
