"""The messages of a command as lines of JSON on the error stream: `mirror-assets --log json COMMAND`."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import TypeAlias

from mirror_assets.errors import ErrorCode
from mirror_assets.redaction import redacted
from mirror_assets.telemetry.scope import current_scope

Raised: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None] | None"


class _Libraries(logging.Handler):
    """Prints log records and warnings of libraries that have no other handler, if messages are lines of JSON."""

    is_on = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, with its exception if it has one."""
        print_line(record.levelname.lower(), record.getMessage(), {"logger": record.name, **_raised(record.exc_info)})


_LIBRARIES = _Libraries(logging.WARNING)


def use_json(*, is_on: bool) -> None:
    """Print messages, including those of libraries, as lines of JSON from now on, or as text."""
    _LIBRARIES.is_on = is_on
    logging.captureWarnings(is_on)
    if is_on:
        logging.getLogger().addHandler(_LIBRARIES)
    else:
        logging.getLogger().removeHandler(_LIBRARIES)


def is_json() -> bool:
    """Whether messages are lines of JSON."""
    return _LIBRARIES.is_on


def print_unexpected(error: Exception) -> None:
    """Print an error that is not one of this project's, with where it was raised."""
    text = "".join(traceback.format_exception_only(error)).strip()
    raised = _raised((type(error), error, error.__traceback__))
    print_line("error", f"unexpected error: {text}", {"code": ErrorCode.UNEXPECTED.value, **raised})


def _raised(info: Raised) -> dict[str, object]:
    if info is None or info[0] is None:
        return {}
    return {"exception": redacted("".join(traceback.format_exception(*info)).rstrip())}


def print_line(level: str, message: str, more: Mapping[str, object] | None = None) -> None:
    """Print a message, with the table, the slice and the attempt that the calling thread works on."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    scope = current_scope()
    work: dict[str, object] = {"table": None, "slice": None, "attempt": None, "trace_id": None}
    if scope:
        work = {"table": scope.table, "slice": scope.slice, "attempt": scope.attempt, "trace_id": scope.trace}
    line = {"time": now, "level": level, "message": redacted(message), **work, **(more or {})}
    # Half a character, as in the name of a file that is not text, is an escape of JSON then.
    text = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
