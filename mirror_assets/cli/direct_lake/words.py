"""Figures in words, for people."""

from __future__ import annotations

from datetime import datetime, timezone


def number(value: float | None, digits: int = 0) -> str:
    """With commas; empty when it is not known."""
    return "" if value is None else f"{value:,.{digits}f}"


def known(value: int | None) -> str:
    """With commas, or that it is not known."""
    return "not known" if value is None else f"{value:,}"


def moment(seconds: float) -> str:
    """A time since 1970, in UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
