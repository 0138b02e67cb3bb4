"""Keeps values of the environment out of messages: where one stands, its reference `${NAME}` is shown.

A value becomes known here when a Spark setting takes it. From then on it is looked for in what Spark says of a failure,
because Spark and the JVM quote settings as they please.
"""

from __future__ import annotations

# Anything shorter is no secret, and `1` or `true` stands in most messages by chance.
_SHORTEST = 6
_references: dict[str, str] = {}


class RedactedError(Exception):
    """An error of a library in its own words, but for values of the environment; it stands in for that error."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {redacted(str(error))}")


def hide(name: str, value: str) -> None:
    """Show the value of this environment variable as its reference from now on."""
    if len(value) >= _SHORTEST:
        # Also as Python writes it between quotes.
        _references.update(dict.fromkeys((value, repr(value)[1:-1]), f"${{{name}}}"))


def redacted(text: str) -> str:
    """The text, with references in place of values; longer values first, as one may be a part of another."""
    for value in sorted(_references, key=len, reverse=True):
        text = text.replace(value, _references[value])
    return text


def redacted_error(error: Exception) -> Exception:
    """The error, or what stands in for it where its message, or that of an error behind it, quotes a value."""
    behind: BaseException | None = error
    while behind is not None:
        if redacted(str(behind)) != str(behind):
            return RedactedError(error)
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return error
