"""Tells everybody of a run that failed, through the landing zone: Dagster's memory is one instance's only."""

from __future__ import annotations

import time
from collections.abc import Callable

from mirror_assets.errors import MirrorError, RebuildError
from mirror_assets.landing.failures import Failure, FailureRecord, read_failure, record_failure
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import RebuildRecord
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import TableBusy
from mirror_assets.mirroring.work import TableWork

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 30, 3600


def note_failure(
    work: TableWork, error: MirrorError, report: Callable[[str], None], key: SliceKey | None = None
) -> None:
    """Count a run that failed with the error, at the slice, if it was at one.

    A break of the source can be seen in its log at any time; what only reading the source's rows tells, the record has
    to say. A landing zone that can't keep the record is reported, and is no second failure.
    """
    if isinstance(error, TableBusy):
        return
    rebuild = error.what if isinstance(error, RebuildError) and error.only_reading_tells else None
    failure = Failure(error.code, str(error), str(key) if key else None, rebuild)
    try:
        drive(record_failure(work.name, failure, time.time_ns() // 1_000_000), work.store)
    except MirrorError as unable:
        report(f"{work.name}: the failure can't be recorded: {unable.what}")


def standing_failure(work: TableWork, manifest: Manifest | None, rebuild: RebuildRecord | None) -> FailureRecord | None:
    """The failures since the table landed something, whoever landed it; None if there are none."""
    found = drive(read_failure(work.name), work.store)
    return found if found is not None and found.stands(manifest, rebuild) else None


def pause_left(failures: int, ended: float, now: float) -> float:
    """Seconds to wait still after so many failures, the last of which ended at `ended` (seconds since 1970).

    Twice as long after each, up to an hour; a clock that is ahead makes it no longer.
    """
    if failures == 0:
        return 0.0
    # 2 ** 7 times the first pause is more than the longest.
    pause: float = min(_FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 7), _LONGEST_PAUSE_SECONDS)
    return min(pause, max(0.0, ended + pause - now))
