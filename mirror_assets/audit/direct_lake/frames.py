"""Whether VACUUM would take what a frame, or the mirror, needs of a table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from mirror_assets.audit.finding import CheckResult
from mirror_assets.delta.actions import Metadata
from mirror_assets.direct_lake.guard.needs import Need
from mirror_assets.direct_lake.guard.plan import NeededFile, VacuumPlan

FRAMES_SAFE = "frames_safe"
_SHOWN = 3


def check_frames(plan: VacuumPlan, metadata: Metadata, warn_seconds: float | None) -> CheckResult:
    """An error when VACUUM would take something needed now, or it is gone; a warning when it will, within the limit.

    `metadata` is the table's, for the statement that keeps files for longer. Raises PropertyUnreadable.
    """
    problems = (*_lost(plan, metadata), *_threatened(plan, metadata))
    if problems:
        return CheckResult(FRAMES_SAFE, problems, _figures(plan))
    left = _seconds_left(plan)
    if left is not None and warn_seconds is not None and left < warn_seconds:
        said = f"{_until(plan)}, in {left / 3600:.1f} hours; {_keep(plan, metadata)}"
        return CheckResult(FRAMES_SAFE, (said,), _figures(plan), is_warning=True)
    return CheckResult(FRAMES_SAFE, (), _figures(plan), note=_until(plan))


def _lost(plan: VacuumPlan, metadata: Metadata) -> Iterable[str]:
    if plan.lost:
        readers = _readers(need for file in plan.lost for need in file.needed_by)
        yield (
            f"gone: {_counted(plan.lost)} of {readers}, for example {plan.lost[0].path}; frame the model anew, or "
            f"rebuild the mirror; {_keep(plan, metadata)}"
        )
    if plan.gone:
        yield f"the log no longer tells the files of {_readers(plan.gone)}: frame the model anew, or rebuild the mirror"


def _threatened(plan: VacuumPlan, metadata: Metadata) -> Iterable[str]:
    if plan.threatened:
        readers = _readers(need for file in plan.threatened for need in file.needed_by)
        yield f"VACUUM now would delete {_counted(plan.threatened)} of {readers}; {_keep(plan, metadata)}"


def _until(plan: VacuumPlan) -> str:
    if plan.safe_until is None:
        return f"VACUUM takes nothing that is needed; now it would delete {len(plan.deleted):,} files"
    until = datetime.fromtimestamp(plan.safe_until, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"VACUUM takes nothing that is needed until {until}"


def _keep(plan: VacuumPlan, metadata: Metadata) -> str:
    return f"to keep files for longer: {plan.keeping(metadata)}"


def _readers(needs: Iterable[Need]) -> str:
    names = sorted(set(needs))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(str, names[:_SHOWN]))}{more}"


def _counted(files: tuple[NeededFile, ...]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def _seconds_left(plan: VacuumPlan) -> float | None:
    return None if plan.safe_until is None else max(0.0, plan.safe_until - plan.now)


def _figures(plan: VacuumPlan) -> dict[str, int | float | str]:
    known = {
        "oldest_readable": plan.oldest_readable,
        "oldest_needed": plan.oldest_needed,
        "seconds_left": _seconds_left(plan),
    }
    return {
        "version": plan.version,
        "deleted_files": len(plan.deleted),
        "deleted_bytes": plan.deleted_bytes,
        "threatened_files": len(plan.threatened),
        "lost_files": len(plan.lost),
        "kept_seconds": plan.retention_seconds,
        "needed_seconds": plan.min_safe_retention_seconds,
        **{name: value for name, value in known.items() if value is not None},
    }
