"""Sizes in bytes as people write them: `16GiB`, `1.5 GB`, `1048576`."""

from __future__ import annotations

import re
from decimal import Decimal

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_BINARY = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS = {"": 1} | {unit.lower(): factor for unit, factor in (_BINARY | _DECIMAL).items()}


def parse_size(text: str) -> int:
    """Bytes written as a number and a unit. Raises ValueError for anything else, or for a fraction of a byte."""
    match = _SIZE.fullmatch(text.strip().replace("_", "").lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"expected a size like 16GiB (units: {', '.join(_BINARY | _DECIMAL)}), got {text!r}")
    size = Decimal(match[1]) * _UNITS[match[2]]
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def size_text(size: int) -> str:
    """`size` bytes in the largest binary unit that loses nothing; `parse_size` gives `size` back."""
    unit, factor = max(((unit, factor) for unit, factor in _BINARY.items() if size % factor == 0), key=lambda of: of[1])
    return f"{size // factor}{unit}" if size else "0B"
