"""Months of the calendar, and what values of partition columns mean in it."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

# A year, with a month, with a day; behind a day, the time that timestamps have.
_VALUE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:[ T].*)?)?)?")


def months_before(day: date, months: int) -> date:
    """The same day so many months ago, or that month's last one."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def days_of(value: str) -> tuple[date, date]:
    """The first and the last day that a partition's value stands for. Raises ValueError for no date."""
    match = _VALUE.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is no date")
    year, month, day = int(match[1]), match[2], match[3]
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    first = date(year, int(month), int(day or 1))
    return first, first if day else first.replace(day=monthrange(year, first.month)[1])
