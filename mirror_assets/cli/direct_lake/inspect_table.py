"""What the direct-lake commands do: inspect the table, print, and report a risk by the exit code."""

from __future__ import annotations

import time
from pathlib import Path

from mirror_assets.cli.direct_lake.request import Request
from mirror_assets.cli.direct_lake.show_parts import show_guardrails, show_vacuum
from mirror_assets.cli.direct_lake.show_report import show_report
from mirror_assets.cli.direct_lake.subject import Subject, subject_of
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.direct_lake.errors import PicturesUnwritable
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, Guardrails, Verdict
from mirror_assets.direct_lake.guardrails.skus import SKUS, SOURCE, SOURCE_DATE, Mode, Sku
from mirror_assets.direct_lake.plots.pictures import (
    framing_pictures,
    growth_pictures,
    guardrail_pictures,
    layout_pictures,
)
from mirror_assets.direct_lake.table_report import Keeping, Questions, ReportOptions, table_report
from mirror_assets.direct_lake.table_snapshot import TableSnapshot
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan, vacuum_of

_Json = dict[str, object]


def report(request: Request, *, as_json: bool) -> Exit:
    """Print the whole report, and draw its pictures if a folder for them is given."""
    subject = subject_of(request)
    sku, mode = subject.sku, subject.mode
    snapshot = subject.snapshot()
    found = table_report(snapshot, _options(subject))
    if as_json:
        parts = {"guardrails": _guardrails(found.guardrails, sku, mode), "vacuum": _vacuum(found.vacuum)}
        show_json([vars(found) | parts])
    else:
        show_report(found, sku, mode)
    if request.pictures is not None:
        _draw(snapshot, request.pictures)
    return Exit.FINE


def vacuum_plan(request: Request, *, as_json: bool) -> Exit:
    """Print what VACUUM would delete; it fails when that is a file that someone needs. Deletes nothing."""
    subject = subject_of(request)
    plan = vacuum_of(subject.log, time.time(), subject.consumers())
    if as_json:
        show_json([_vacuum(plan)])
    else:
        show_vacuum(plan, subject.name)
    return Exit.FINE if plan.is_safe else Exit.FAILED


def guardrails(request: Request, *, as_json: bool) -> Exit:
    """Print how a table fits capacities; it fails when it exceeds a limit of the chosen one."""
    subject = subject_of(request)
    sku, mode = subject.sku, subject.mode
    found = subject.snapshot(dictionaries=False).guardrails
    if as_json:
        show_json([_guardrails(found, sku, mode)])
    else:
        show_guardrails(found, sku, mode)
    is_over = sku is not None and found.table.into(sku).verdict is Verdict.OVER
    return Exit.FAILED if is_over else Exit.FINE


def _options(subject: Subject) -> ReportOptions:
    """Return what the command line asks of the report."""
    request, consumers = subject.request, subject.consumers()
    dated = request.date_column is not None and request.months is not None
    questions = Questions(
        columns=request.columns,
        one_side=request.one_side,
        partition_by=request.partition_by,
        keeping=Keeping(request.date_column or "", request.months or 0) if dated else None,
        sku=subject.sku or SKUS[0],
    )
    return ReportOptions(consumers, questions, subject.maintenance(consumers.mirror))


def _vacuum(plan: VacuumPlan) -> _Json:
    return {"is_safe": plan.is_safe, "deleted_bytes": plan.deleted_bytes, "plan": plan}


def _guardrails(found: Guardrails, sku: Sku | None, mode: Mode) -> _Json:
    """Return the guardrails of the capacity, or of all, and where their limits come from."""
    mirror = None if found.mirror is None else _fitting(found.mirror, sku)
    table = _fitting(found.table, sku)
    return {"source": SOURCE, "source_date": SOURCE_DATE, "mode": mode, "table": table, "mirror": mirror}


def _fitting(fitting: Fitting, sku: Sku | None) -> _Json:
    fits = fitting.fits if sku is None else (fitting.into(sku),)
    smallest = fitting.smallest
    return {
        "figures": fitting.figures,
        "smallest": smallest.name if smallest else None,
        "fits": [{"sku": x.sku.name, "verdict": x.verdict, "days_left": x.days_left, "uses": x.uses} for x in fits],
    }


def _draw(snapshot: TableSnapshot, folder: Path) -> None:
    """Write the pictures into the folder, with the same names each time. Raises PlotsMissing, PicturesUnwritable."""
    limits = guardrail_pictures(snapshot.guardrails.table.figures)
    pictures = limits | growth_pictures(snapshot) | layout_pictures(snapshot) | framing_pictures(snapshot)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, png in pictures.items():
            (folder / f"{name}.png").write_bytes(png)
    except OSError as error:
        raise PicturesUnwritable(str(folder), error.strerror or str(error)) from error
    note(f"drawn in {folder}: {', '.join(f'{name}.png' for name in pictures)}")
