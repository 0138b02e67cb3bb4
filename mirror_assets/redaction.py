"""Replaces values of environment variables in error messages by their references `${NAME}`.

A variable is registered when a Spark setting uses it, because Spark and the JVM may quote any setting in an error.
"""

from __future__ import annotations

# A shorter value is not a secret, and would be replaced where it is in a message by chance, such as `1` or `true`.
_SHORTEST = 6
_references: dict[str, str] = {}


class RedactedError(Exception):
    """Replaces an error of a library: its type and message, without the values of environment variables."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {redacted(str(error))}")


def hide(name: str, value: str) -> None:
    """Show this environment variable's value as `${name}` from now on; values shorter than six characters stay."""
    if len(value) >= _SHORTEST:
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
