"""The messages of a command as lines of JSON on the error stream: `mirror-assets --log json COMMAND`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from mirror_assets.redaction import redacted
from mirror_assets.telemetry.scope import current_scope


@dataclass
class _Switch:
    is_on: bool = False


_SWITCH = _Switch()


def use_json(*, is_on: bool) -> None:
    """Print messages as lines of JSON from now on, or as text."""
    _SWITCH.is_on = is_on


def is_json() -> bool:
    """Whether messages are lines of JSON."""
    return _SWITCH.is_on


def print_line(level: str, message: str, more: Mapping[str, object] | None = None) -> None:
    """Print a message, with the table, the slice and the attempt that the calling thread works on."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    scope = current_scope()
    work = {
        "table": scope.table if scope else None,
        "slice": scope.slice if scope else None,
        "attempt": scope.attempt if scope else None,
        "trace_id": scope.trace if scope else None,
    }
    line = {"time": now, "level": level, "message": redacted(message), **work, **(more or {})}
    sys.stderr.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stderr.flush()
