"""Prints for people: guardrails, a plan of VACUUM, and what models load when they are framed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from mirror_assets.cli.output import show_line, show_records
from mirror_assets.direct_lake.framing import FramingEffect, FramingPoint
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, Guardrails, Use, Verdict
from mirror_assets.direct_lake.guardrails.skus import SOURCE, SOURCE_DATE, Mode, Sku, consequence
from mirror_assets.direct_lake.vacuum.requirements import Requirement
from mirror_assets.direct_lake.vacuum.vacuum_plan import NeededFile, VacuumPlan, hours, hours_at_least

_USE_COLUMNS = ("of", "limit", "used", "allowed", "% free", "days left", "verdict")
_FIT_COLUMNS = ("capacity", "verdict", "tightest limit", "used", "allowed", "days left", "mirror, predicted")
_EFFECT = ("framed at", "after", "rows kept", "with another deletion vector", "to load", "% to load", "bytes to load")
# Most files that are printed; --json has all.
_MOST_FILES = 20


def show_guardrails(found: Guardrails, sku: Sku | None, mode: Mode) -> None:
    """Print the limits of the capacity, and what happens when one is exceeded; without one, print all capacities."""
    if sku is None:
        _show_all(found)
    else:
        _show_one(found, sku, mode)
    _say_smallest("it", found.table)
    if found.mirror is not None:
        _say_smallest("its mirror, once Fabric has compacted it,", found.mirror)
    show_line(f"Limits: {SOURCE}, {SOURCE_DATE}.")


def _show_one(found: Guardrails, sku: Sku, mode: Mode) -> None:
    fit, fittings = found.table.into(sku), {"table": found.table, "mirror, predicted": found.mirror}
    rows = [_use_row(of, use) for of, one in fittings.items() if one is not None for use in one.into(sku).uses]
    title = f"Guardrails of {'/'.join(sku.names)}, {mode.value}: {found.table.figures.table}"
    show_records(title, _USE_COLUMNS, rows)
    for use in fit.uses:
        if use.verdict is Verdict.OVER:
            show_line(f"{use}: {consequence(mode, use.limit)}.")


def _use_row(of: str, use: Use) -> tuple[str, ...]:
    """Return the row of one limit; a model is assumed to have no other table."""
    return (
        of if use.table else f"{of}, as a model",
        use.limit.value,
        "not known" if use.used is None else f"{use.used:,}",
        "unlimited" if use.allowed is None else f"{use.allowed:,}",
        number(use.headroom_percent, 1),
        number(use.days_left, 1),
        use.verdict.value,
    )


def _show_all(found: Guardrails) -> None:
    rows = []
    for index, fit in enumerate(found.table.fits):
        tightest = fit.tightest
        rows.append(
            (
                "/".join(fit.sku.names),
                fit.verdict.value,
                tightest.limit.value if tightest else "",
                number(tightest.used) if tightest else "",
                number(tightest.allowed) if tightest else "",
                number(fit.days_left, 1),
                found.mirror.fits[index].verdict.value if found.mirror else "not known",
            )
        )
    show_records(f"Guardrails of {found.table.figures.table}", _FIT_COLUMNS, rows)


def _say_smallest(what: str, fitting: Fitting) -> None:
    smallest = fitting.smallest
    fits = f"the smallest capacity that {what} surely fits into is {smallest.name}" if smallest else ""
    said = fits or f"there is no capacity that {what} surely fits into"
    show_line(f"{said[0].upper()}{said[1:]}.")


def show_vacuum(plan: VacuumPlan, name: str) -> None:
    """Print the files that VACUUM would delete, who needs them, and the statement that keeps them."""
    show_records(f"VACUUM of {name} at version {plan.version}", ("", "found"), list(_facts(plan)))
    _show_files("Would be deleted, and are needed", plan.threatened)
    _show_files("Are needed, and gone already", plan.lost)
    if plan.gone:
        show_line(f"The log no longer tells the files of {_needed_by(plan.gone)}.")
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
    rows = [(file.path, _needed_by(file.needed_by)) for file in files[:_MOST_FILES]]
    show_records(title, ("file", "needed by"), rows)
    if len(files) > _MOST_FILES:
        show_line(f"… and {len(files) - _MOST_FILES:,} more; --json has all.")


def _needed_by(needs: Iterable[Requirement]) -> str:
    return ", ".join(map(str, needs))


def show_framing(points: Sequence[FramingPoint], reframing: Sequence[FramingEffect]) -> None:
    """Print what a model loads: framed after each of the last days, and reframed from the frames that were given."""
    if points:
        rows = [(*_effect(point.effect), moment(point.timestamp_ms / 1000), _marks(point)) for point in points]
        show_records("Framed once a day", (*_EFFECT, "committed", "maintenance"), rows)
    if reframing:
        show_records("Frames, framed anew now", _EFFECT, [_effect(effect) for effect in reframing])


def _effect(effect: FramingEffect) -> tuple[str, ...]:
    share = effect.reloaded_share
    return (
        f"version {effect.last}",
        f"version {effect.first}",
        known(effect.kept.rows),
        known(effect.changed.rows),
        known(effect.reloaded.rows),
        "" if share is None else f"{100 * share:.0f}",
        f"{effect.bytes_to_load:,}",
    )


def _marks(point: FramingPoint) -> str:
    return ", ".join(dict.fromkeys(mark.operation.value for mark in point.marks))


def number(value: float | None, digits: int = 0) -> str:
    """Return the number with thousands separators, or an empty text for None."""
    return "" if value is None else f"{value:,.{digits}f}"


def known(value: int | None) -> str:
    """Return the number with thousands separators, or `not known` for None."""
    return "not known" if value is None else f"{value:,}"


def moment(seconds: float) -> str:
    """Return a time, in seconds since 1970, as UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
