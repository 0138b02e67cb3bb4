"""Numbers and lists as people read them: bytes, seconds, counts with their noun, several messages."""

from __future__ import annotations

from collections.abc import Sequence

_BYTES = ("B", "kB", "MB", "GB", "TB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_MOST_TEXTS = 5


def size(number: float) -> str:
    """Return bytes in the unit that leaves one to three digits before the point: `17.2 GB`."""
    value, unit = float(number), 0
    while value >= 999.95 and unit < len(_BYTES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.0f} {_BYTES[unit]}" if unit == 0 else f"{value:,.1f} {_BYTES[unit]}"


def duration(seconds: float) -> str:
    """Return seconds as `4.2 s`, `15 min`, `1 h 30 min` or `2 d 4 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return _both(seconds, _MINUTE, "min", 1, "s")
    if seconds < _DAY:
        return _both(seconds, _HOUR, "h", _MINUTE, "min")
    return _both(seconds, _DAY, "d", _HOUR, "h")


def _both(seconds: float, large: int, large_unit: str, small: int, small_unit: str) -> str:
    whole, rest = divmod(int(seconds), large)
    return f"{whole:,} {large_unit}" + (f" {rest // small} {small_unit}" if rest >= small else "")


def count(number: int, noun: str) -> str:
    """Return `1 file` or `2,000 files`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def joined(texts: Sequence[str]) -> str:
    """Return the first five texts as one, and how many more there are."""
    more = [f"and {len(texts) - _MOST_TEXTS} more"] if len(texts) > _MOST_TEXTS else []
    return "; ".join([*texts[:_MOST_TEXTS], *more])
