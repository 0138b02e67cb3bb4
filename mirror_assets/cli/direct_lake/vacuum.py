"""A plan of VACUUM for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mirror_assets.cli.direct_lake.words import moment
from mirror_assets.cli.output import show_line, show_records
from mirror_assets.direct_lake.vacuum.requirements import Requirement
from mirror_assets.direct_lake.vacuum.vacuum_plan import NeededFile, VacuumPlan, hours, hours_at_least

# So many files are shown; --json has all of them.
_SHOWN = 20


def show_vacuum(plan: VacuumPlan, name: str) -> None:
    """What would go, who needs it, and what keeps it."""
    show_records(f"VACUUM of {name} at version {plan.version}", ("", "found"), list(_facts(plan)))
    _show_files("Would be deleted, and are needed", plan.threatened)
    _show_files("Are needed, and gone already", plan.lost)
    if plan.gone:
        show_line(f"The log no longer tells the files of {_needs(plan.gone)}.")
    if plan.statement is not None:
        show_line("To keep what is needed, run this before VACUUM:")
        show_line(f"{plan.statement};")
    elif plan.threatened:
        show_line("The table's properties keep what is needed: run VACUUM without RETAIN 0 HOURS.")


def _facts(plan: VacuumPlan) -> Iterator[tuple[str, str]]:
    yield "retention that counts", hours(plan.retention_seconds)
    yield "would be deleted", f"{len(plan.deleted):,} files, {plan.deleted_bytes:,} bytes"
    yield "of these, needed", f"{len(plan.threatened):,} files"
    yield "needed, and gone already", f"{len(plan.lost):,} files"
    yield "least retention that is safe", hours_at_least(plan.min_safe_retention_seconds)
    yield "safe until", _until(plan)
    if plan.resume_until is not None:
        yield "the mirror can go on until", moment(plan.resume_until)
    yield "oldest version in the log", _version(plan.oldest_reconstructable)
    yield "oldest version with all files", _version(plan.oldest_readable)
    yield "oldest version that is needed", _version(plan.oldest_needed)


def _until(plan: VacuumPlan) -> str:
    if plan.untold:
        return "not known: the log no longer tells what a frame needs"
    return "no end: no needed file can go" if plan.safe_until is None else moment(plan.safe_until)


def _version(version: int | None) -> str:
    return "none" if version is None else str(version)


def _show_files(title: str, files: Sequence[NeededFile]) -> None:
    if not files:
        return
    rows = [(file.path, _needs(file.needed_by)) for file in files[:_SHOWN]]
    show_records(title, ("file", "needed by"), rows)
    if len(files) > _SHOWN:
        show_line(f"… and {len(files) - _SHOWN:,} more; --json has all.")


def _needs(needs: Iterable[Requirement]) -> str:
    return ", ".join(map(str, needs))
