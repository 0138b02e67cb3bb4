"""Errors of ticks: their text ends with the error's code, which is all that Dagster keeps of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mirror_assets.errors import ErrorCode, MirrorError

_ENDING = re.compile(r"\s*\((\w+)\)$")
_CODES = frozenset(code.value for code in ErrorCode)


class TickFailed(Exception):
    """A tick failed; the next one retries."""

    def __init__(self, error: MirrorError) -> None:
        super().__init__(f"{error} ({error.code.value})")


@contextmanager
def coded_tick() -> Iterator[None]:
    """Let the tick fail with the error's message and code. Raises TickFailed."""
    try:
        yield
    except MirrorError as error:
        raise TickFailed(error) from error


def split_code(text: str) -> tuple[str, str | None]:
    """Return the text of a tick's error without its code, and the code, or None where it has none."""
    found = _ENDING.search(text)
    if found is None or found[1] not in _CODES:
        return text, None
    return text[: found.start()], found[1]
