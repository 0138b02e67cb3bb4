"""Repeats a check while a run works on the table: a half-published slice is not damage."""

from __future__ import annotations

import time
from collections.abc import Callable

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.table_lease import holder
from mirror_assets.verify.check_result import CheckResult

# A half-published slice changes within seconds; damage persists.
_PAUSES = (2.0, 5.0)


def settled(
    context: TableContext, run: Callable[[], CheckResult], sleep: Callable[[float], None] = time.sleep
) -> CheckResult:
    """Run the check again while it fails and a run works on the table.

    Returns when it passes, when no run worked on the table meanwhile, or when it failed twice with the same message,
    after a pause. Raises what the check and the store raise.
    """
    message: str | None = None
    for pause in (*_PAUSES, 0.0):
        before = _etag(context)
        result = run()
        is_idle = holder(context.store, context.name) is None and _etag(context) == before
        if result.passed or is_idle or result.message == message:
            break
        message = result.message
        sleep(pause)
    return result


def _etag(context: TableContext) -> str | None:
    current = drive(read_manifest(context.name), context.store)
    return current.etag if current else None
