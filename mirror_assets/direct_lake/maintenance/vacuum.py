"""VACUUM, with a retention that keeps what frames and the mirror need; without one there is none."""

from __future__ import annotations

from mirror_assets.direct_lake.guard.vacuum import effective_retention
from mirror_assets.direct_lake.maintenance.table import PlannedTable
from mirror_assets.direct_lake.maintenance.values import LeftOut, SafeRetention, Step, StepKind
from mirror_assets.direct_lake.spans import hours, hours_at_least
from mirror_assets.source.replay import Snapshot

_FILES = "delta.deletedFileRetentionDuration"
# Models framed before the plan runs need the files that it rewrites, until they are framed anew.
_REFRAMED = 86_400.0


def plan_vacuum(
    snapshot: Snapshot, table: PlannedTable, safe: SafeRetention | None, *, rewrites: bool
) -> tuple[Step | LeftOut, ...]:
    """The statements; or why there is none. `rewrites`: steps before it replace files. Raises PropertyUnreadable.

    RETAIN is never written: from Delta 4.1 on it is ignored, only the table's property counts (reference `direct-lake`
    §3.3); before that, VACUUM without it goes by the same property.
    """
    if safe is None:
        return (LeftOut(StepKind.VACUUM, "nobody asked the retention guard how long files are needed"),)
    kept = max(effective_retention(snapshot), safe.seconds if safe.statement else 0.0)
    if safe.statement is None and safe.files == 0:
        return (LeftOut(StepKind.VACUUM, "no file is old enough to go"),)
    if kept < safe.seconds:
        return (LeftOut(StepKind.VACUUM, f"{_FILES} is below the {hours_at_least(safe.seconds)} that are needed"),)
    if rewrites and kept < _REFRAMED:
        why = f"{_FILES} is {hours(kept)}: it would delete what was just rewritten, which models still use; frame first"
        return (LeftOut(StepKind.VACUUM, why),)
    why = f"{_deleted(safe)}; files that are not live any more are kept for {hours(kept)}"
    steps = [Step(StepKind.VACUUM, f"VACUUM {table.name}", f"{why}, and {hours_at_least(safe.seconds)} are needed")]
    if safe.statement is not None:
        needed = f"frames or the mirror need files for {hours_at_least(safe.seconds)}, longer than the table keeps them"
        steps.insert(0, Step(StepKind.RETENTION, safe.statement, needed))
    return tuple(steps)


def _deleted(safe: SafeRetention) -> str:
    if safe.files is None:
        return "old files go"
    size = "" if safe.bytes is None else f" of {safe.bytes:,} bytes"
    return f"{safe.files:,} files{size} go"
