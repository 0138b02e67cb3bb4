"""Intervals in table properties."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Metadata
from mirror_assets.source.table_properties import Retention, parse_interval

_DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("interval 30 days", 30 * _DAY),
        ("interval 1 week", 7 * _DAY),
        ("INTERVAL 36 HOURS", 1.5 * _DAY),
        ("2 weeks", 14 * _DAY),
        (" interval  1 week 2 days 3 hours 4 minutes 5 seconds 6 milliseconds 7 microseconds", 788_645.006007),
        ("interval '7' days", 7 * _DAY),
        ("interval 1 week -2 days", 5 * _DAY),
        ("interval 1.5 seconds", 1.5),
        ("interval 0 days", 0.0),
    ],
)
def test_intervals_that_delta_takes(text: str, seconds: float) -> None:
    assert parse_interval(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "interval", "week", "interval 1 month", "interval -1 day", "30", "1 day x", "30 d"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        parse_interval(text)


@given(st.floats(31 * _DAY, 1e9))
def test_the_statement_that_keeps_files_is_long_enough_by_less_than_a_day(seconds: float) -> None:
    statement = Retention.of("lake/t", Metadata("id", "{}")).keeping(seconds)
    intervals = re.findall("'(interval .+?)'", statement)
    assert len(intervals) == 2
    assert all(seconds <= parse_interval(interval) < seconds + _DAY for interval in intervals)
