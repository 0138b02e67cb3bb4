"""Points in a source's history as they are written, and where they lie in a log."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.ranges import (
    CommitTimes,
    Point,
    TimePoint,
    VersionPoint,
    first_version,
    is_beyond,
    last_version,
    parse_point,
)

# Versions 3 to 6, an hour apart.
_HOUR = 3_600_000
_TIMES = CommitTimes(3, tuple(10 * _HOUR + hour * _HOUR for hour in range(4)))


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
        ("2026-01-31 18:30:00 Nowhere/City", "no time zone"),
        ("2026-01-31 18:30:00.1234", "expected a version"),
    ],
)
def test_what_is_no_point_says_what_is_expected(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_point(text)


@given(st.integers(0, 4_000_000_000_000))
def test_a_time_is_shown_as_it_can_be_written(time_ms: int) -> None:
    assert parse_point(str(TimePoint(time_ms))) == TimePoint(time_ms)


def test_a_range_holds_the_commits_at_its_ends() -> None:
    at_five, between = TimePoint(12 * _HOUR), TimePoint(12 * _HOUR + 1)
    assert (first_version(at_five, _TIMES), last_version(at_five, _TIMES)) == (5, 5)
    assert (first_version(between, _TIMES), last_version(between, _TIMES)) == (6, 5)
    assert (first_version(TimePoint(14 * _HOUR), _TIMES), last_version(TimePoint(0), _TIMES)) == (None, None)


def test_beyond_is_behind_the_newest_commit() -> None:
    assert not is_beyond(VersionPoint(6), _TIMES)
    assert is_beyond(VersionPoint(7), _TIMES)
    assert not is_beyond(TimePoint(13 * _HOUR), _TIMES)
    assert is_beyond(TimePoint(13 * _HOUR + 1), _TIMES)
