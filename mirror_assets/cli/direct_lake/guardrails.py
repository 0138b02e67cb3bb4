"""Guardrails for people."""

from __future__ import annotations

from mirror_assets.cli.direct_lake.words import number
from mirror_assets.cli.output import show_line, show_records
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, Guardrails, Use, Verdict
from mirror_assets.direct_lake.guardrails.skus import SOURCE, SOURCE_DATE, Mode, Sku, consequence

_USE_COLUMNS = ("of", "limit", "used", "allowed", "% free", "days left", "verdict")
_FIT_COLUMNS = ("capacity", "verdict", "tightest limit", "used", "allowed", "days left", "mirror, predicted")


def show_guardrails(found: Guardrails, sku: Sku | None, mode: Mode) -> None:
    """Each limit of the capacity, with what happens over it; without one, all capacities."""
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
    """Without the table's name, which may be a long address; a model is taken to have no other table."""
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
