"""Points in a source's history, and ranges of commits, which include both ends and end at the newest commit."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.ranges import (
    Bounds,
    CommitTimes,
    Point,
    TimePoint,
    VersionPoint,
    parse_point,
    parse_range,
    resolve,
)
from mirror_assets_tests.errors import raises

# Versions 0 to 4, made on the first five days of 1970.
_DAY = 86_400_000
_TIMES = CommitTimes(0, tuple(day * _DAY for day in range(5)))


def _bounds(first: str | None, last: str | None, *, clip: bool = False) -> Bounds:
    return resolve("lake", _TIMES, parse_range(first, last, clip=clip))


def test_versions_and_times_name_the_same_commits() -> None:
    assert _bounds("1", "3") == _bounds("1970-01-02", "1970-01-04") == Bounds(1, 3)
    assert _bounds("1970-01-01 00:00:00.001", "3") == Bounds(1, 3)
    assert _bounds(None, "1970-01-04 23:59:59") == Bounds(None, 3)
    assert _bounds("2", None) == _bounds("2", "1970-01-05") == Bounds(2, 4)


@pytest.mark.parametrize(
    ("first", "last", "why"),
    [
        (None, "5", "--to version 5 is after its newest commit, version 4"),
        (None, "1970-01-05 00:00:00.001", r"--to 1970-01-05 00:00:00\.001 UTC is after"),
        ("9", None, "--from version 9 is after"),
        ("3", "2", "--from version 3 comes after --to version 2"),
    ],
)
def test_what_is_no_range_of_the_log_is_refused(first: str | None, last: str | None, why: str) -> None:
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match=why):
        _bounds(first, last)


def test_what_is_beyond_the_end_is_clipped_where_that_is_allowed() -> None:
    assert _bounds("2", "9", clip=True) == _bounds("2", "1971-01-01", clip=True) == Bounds(2, 4)
    assert _bounds("1971-01-01", None, clip=True) == Bounds(5, 4)
    assert _bounds("7", "9", clip=True).last == 4


def test_a_range_before_the_log_is_refused() -> None:
    cleaned = CommitTimes(2, (2 * _DAY, 3 * _DAY))
    with raises(SettingError, ErrorCode.VERSION_REFUSED, match="before its log begins, at version 2"):
        resolve("lake", cleaned, parse_range(None, "1970-01-02", clip=False))


@given(st.integers(0, 4), st.integers(0, 4))
def test_every_range_of_versions_is_itself_or_refused(first: int, last: int) -> None:
    if first <= last:
        assert _bounds(str(first), str(last)) == Bounds(first, last)
    else:
        with raises(SettingError, ErrorCode.VERSION_REFUSED):
            _bounds(str(first), str(last))


def _utc(*moment: int) -> int:
    return round(datetime(*moment, tzinfo=timezone.utc).timestamp() * 1000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("7", VersionPoint(7)),
        ("2026-01-31", TimePoint(_utc(2026, 1, 31))),
        ("2026-01-31 18:30:00", TimePoint(_utc(2026, 1, 31, 18, 30))),
        ("2026-01-31T18:30:00.25Z", TimePoint(_utc(2026, 1, 31, 18, 30) + 250)),
        ("2026-01-31 18:30:00.007 +02:00", TimePoint(_utc(2026, 1, 31, 16, 30) + 7)),
        ("2026-07-31 18:30:00 Europe/Berlin", TimePoint(_utc(2026, 7, 31, 16, 30))),
        ("2026-01-31 UTC", TimePoint(_utc(2026, 1, 31))),
    ],
)
def test_what_is_written_is_the_point_that_is_meant(text: str, point: Point) -> None:
    assert parse_point(text) == point


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-1", "expected a version"),
        ("yesterday", "expected a version"),
        ("2026-02-30", "no such time"),
        ("2026-01-31 25:00:00", "no such time"),
        ("2026-01-31 18:30", "expected a version"),
        ("2026-01-31 18:30:00 Nowhere/City", "not a time zone"),
        ("2026-01-31 18:30:00.1234", "expected a version"),
    ],
)
def test_what_is_no_point_says_what_is_expected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_point(text)


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_is_shown_as_it_can_be_written(time_ms: int) -> None:
    assert parse_point(str(TimePoint(time_ms))) == TimePoint(time_ms)
