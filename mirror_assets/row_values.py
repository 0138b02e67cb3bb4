"""How messages show values of a row, so that they can be left out where a message goes to people outside.

Everything that comes from rows stands between « and »: `key «id=7, day='2026-01-01'»`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LONGEST = 40
_SHOWN = re.compile("«[^«»]*(?:»|$)")
_LEFT_OUT = "«…»"


def shown_key(values: Mapping[str, object]) -> str:
    """Return the key's columns and values as text, each value cut to forty characters: `«id=7, day='2026-01-01'»`."""
    return marked(", ".join(f"{name}={_shown(value)}" for name, value in values.items()))


def without_values(text: str) -> str:
    """Return the text with `«…»` in place of each row's values, also where the text was cut within them."""
    return _SHOWN.sub(_LEFT_OUT, text)


def marked(text: str) -> str:
    """Return the text as one that comes from rows."""
    return f"«{text.replace('«', '<').replace('»', '>')}»"


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    return (repr(value) if isinstance(value, str | bytes) else str(value))[:_LONGEST]
