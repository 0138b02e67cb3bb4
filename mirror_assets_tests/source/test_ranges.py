"""Ranges of commits: both ends belong to them, and beyond the newest commit there is nothing unless it is clipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.errors import RangeRefused
from mirror_assets.source.ranges import Bounds, CommitTimes, parse_range, resolve

# Versions 0 to 4, made on the first five days of 1970.
_DAY = 86_400_000
_TIMES = CommitTimes(0, tuple(day * _DAY for day in range(5)))


def _bounds(first: str | None, last: str | None, *, clip: bool = False) -> Bounds:
    return resolve("lake", _TIMES, parse_range(first, last, clip=clip))


def test_versions_and_times_name_the_same_commits() -> None:
    assert _bounds("1", "3") == _bounds("1970-01-02", "1970-01-04") == Bounds(1, 3)
    assert _bounds("1970-01-01 00:00:00.001", "3") == Bounds(1, 3)
    assert _bounds(None, "1970-01-04 23:59:59") == Bounds(None, 3)
    assert _bounds("2", None) == Bounds(2, 4)


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (None, "5", "--to version 5 lies behind its newest commit, version 4"),
        (None, "1970-01-06", r"--to 1970-01-06 00:00:00\.000 UTC lies behind"),
        ("9", None, "--from version 9 lies behind"),
        ("3", "2", "--from version 3 comes after --to version 2"),
    ],
)
def test_what_is_no_range_of_the_log_is_refused(first: str | None, last: str | None, why: str) -> None:
    with pytest.raises(RangeRefused, match=why):
        _bounds(first, last)


def test_what_is_beyond_the_end_is_clipped_where_that_is_allowed() -> None:
    assert _bounds("2", "9", clip=True) == _bounds("2", "1971-01-01", clip=True) == Bounds(2, 4)
    assert _bounds("1971-01-01", None, clip=True) == Bounds(5, 4)
    assert _bounds("7", "9", clip=True).last == 4


def test_a_range_before_the_log_is_refused() -> None:
    cleaned = CommitTimes(2, (2 * _DAY, 3 * _DAY))
    with pytest.raises(RangeRefused, match="before its log begins, at version 2"):
        resolve("lake", cleaned, parse_range(None, "1970-01-02", clip=False))


@given(st.integers(0, 4), st.integers(0, 4))
def test_every_range_of_versions_is_itself_or_refused(first: int, last: int) -> None:
    if first <= last:
        assert _bounds(str(first), str(last)) == Bounds(first, last)
    else:
        with pytest.raises(RangeRefused):
            _bounds(str(first), str(last))
