"""Records failed runs in the landing zone, and computes how long every scheduler waits before the next."""

from __future__ import annotations

from collections.abc import Callable

from mirror_assets.errors import ErrorCode, MirrorError, RebuildError
from mirror_assets.landing.failures import FailureRecord, clear_failure, read_failure, record_failure
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import RebuildRecord
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TABLE_BUSY
from mirror_assets.pipeline.liveness import now_ms
from mirror_assets.telemetry.record import count_failure

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 30, 3600


def note_failure(
    context: TableContext, error: MirrorError, report: Callable[[str], None], key: SliceKey | None = None
) -> bool:
    """Record that a run failed, and at which slice, so that every scheduler waits before it tries again.

    Records a needed rebuild when only reading the source's rows shows it: a break in the log is found again anyway.
    Returns False if the landing zone can't keep the record; that is reported, and is not a second failure.
    """
    if error.row is TABLE_BUSY:
        return True
    count_failure(str(context.name), error.code.value)
    rebuild = error.what if isinstance(error, RebuildError) and error.needs_reading else None
    try:
        record_failure(context.store, context.name, error.code, str(error), now_ms(), key, rebuild)
    except MirrorError as unable:
        report(f"{context.name}: the failure can't be recorded: {unable.what}")
        return False
    return True


def note_well(context: TableContext, report: Callable[[str], None]) -> None:
    """Delete the record of failures: a complete plan has found nothing to do. A store that can't is reported."""
    try:
        clear_failure(context.store, context.name)
    except MirrorError as unable:
        report(f"{context.name}: the record of its failures can't be deleted: {unable.what}")


def unresolved_failure(
    context: TableContext, manifest: Manifest | None, rebuild: RebuildRecord | None
) -> FailureRecord | None:
    """Return the recorded failures since the table was last well, or None."""
    found = read_failure(context.store, context.name)
    return found if found is not None and found.stands(manifest, rebuild) else None


def failure_pause(record: FailureRecord, now: float) -> float:
    """Return the seconds to wait at `now` (seconds since 1970) until the next run, after the failures of the record.

    A run that was killed may have worked on many tables: the first time, none of them has to wait.
    """
    return pause_left(record.count - (record.code is ErrorCode.RUN_KILLED), record.failed_ms / 1000, now)


def pause_left(failures: int, ended: float, now: float) -> float:
    """Return the seconds to wait until the next run after this many failures.

    The pause doubles with each failure, from 30 seconds to an hour. `ended` is the end of the last failed run and `now`
    the time, in seconds since 1970; an `ended` in the future makes the pause no longer.
    """
    if failures <= 0:
        return 0.0
    # 2 ** 7 times the first pause is more than the longest.
    pause: float = min(_FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 7), _LONGEST_PAUSE_SECONDS)
    return min(pause, max(0.0, ended + pause - now))
