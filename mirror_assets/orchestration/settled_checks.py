"""Checks of what a run may be writing at the same moment: a half-published slice is no damage."""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.table_lease import holder

# What is half published moves on within seconds; damage stays.
_PAUSES = (2.0, 5.0)


def settled(
    context: TableContext, run: Callable[[], dg.AssetCheckResult], sleep: Callable[[float], None] = time.sleep
) -> Callable[[], dg.AssetCheckResult]:
    """Return the check, run again while it fails and a run works on the table.

    It ends when it passes, when nobody worked on the table meanwhile, or when it has failed with the same text twice,
    seconds apart. Raises what the check and the store raise.
    """

    def again() -> dg.AssetCheckResult:
        said: str | None = None
        for pause in (*_PAUSES, 0.0):
            before = _etag(context)
            result = run()
            is_still = holder(context.store, context.name) is None and _etag(context) == before
            if result.passed or is_still or result.description == said:
                break
            said = result.description
            sleep(pause)
        return result

    return again


def _etag(context: TableContext) -> str | None:
    current = drive(read_manifest(context.name), context.store)
    return current.etag if current else None
