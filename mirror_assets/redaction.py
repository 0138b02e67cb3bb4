"""What messages may show: no secrets, and values of rows so that they can be left out.

Values of environment variables are replaced by their references `${NAME}`. A variable is registered when a Spark
setting uses it, because Spark and the JVM may quote any setting in an error.

Everything that comes from rows is between « and »: `key «id=7, day='2026-01-01'»`. So it can be left out where a
message goes to people outside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# A shorter value is not a secret, and would be replaced where it is in a message by chance, such as `1` or `true`.
_SHORTEST_SECRET = 6
_references: dict[str, str] = {}
_LONGEST_VALUE = 40
_SHOWN = re.compile("«[^«»]*(?:»|$)")
_LEFT_OUT = "«…»"


class RedactedError(Exception):
    """Replaces an error of a library: its type and message, without the values of environment variables."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {redacted(str(error))}")


def hide(name: str, value: str) -> None:
    """Show this environment variable's value as `${name}` from now on; values shorter than six characters stay."""
    if len(value) >= _SHORTEST_SECRET:
        # Also escaped, as repr() writes it.
        _references.update(dict.fromkeys((value, repr(value)[1:-1]), f"${{{name}}}"))


def redacted(text: str) -> str:
    """Return the text with references in place of values; the longest first, because one may contain another."""
    for value in sorted(_references, key=len, reverse=True):
        text = text.replace(value, _references[value])
    return text


def redacted_error(error: Exception) -> Exception:
    """Return a RedactedError if the error's message, or that of one of its causes, has a value; else the error."""
    behind: BaseException | None = error
    while behind is not None:
        if redacted(str(behind)) != str(behind):
            return RedactedError(error)
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return error


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
    return (repr(value) if isinstance(value, str | bytes) else str(value))[:_LONGEST_VALUE]
