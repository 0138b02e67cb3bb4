"""Durations as Delta's table properties spell them: `interval 30 days`."""

from __future__ import annotations

import re

_SECONDS = {
    "week": 604_800.0,
    "day": 86_400.0,
    "hour": 3_600.0,
    "minute": 60.0,
    "second": 1.0,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
}
_PAIR = re.compile(r"([+-]?)'?(\d+(?:\.\d+)?)'?\s+([a-z]+?)s?(?:\s+|$)")


def parse_interval(text: str) -> float:
    """The seconds of an interval; the word `interval` may be left out, as in Delta.

    Raises ValueError for what Delta refuses, too: another text, months and years, and less than nothing.
    """
    rest = text.strip().lower().removeprefix("interval ").strip()
    seconds = 0.0
    while match := _PAIR.match(rest):
        sign, number, unit = match.groups()
        if unit not in _SECONDS:
            break
        seconds += float(f"{sign}{number}") * _SECONDS[unit]
        rest = rest[match.end() :]
        if not rest:
            break
    if rest or not text.strip() or seconds < 0:
        raise ValueError(f"{text!r} is no interval like 'interval 30 days'")
    return seconds


def interval_of_days(seconds: float) -> str:
    """At least this long, in whole days."""
    days = max(1, -int(-seconds // _SECONDS["day"]))
    return f"interval {days} days"
