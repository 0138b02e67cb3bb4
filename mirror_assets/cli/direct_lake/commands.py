"""The commands themselves: look, print, and say by the exit code whether something is at risk."""

from __future__ import annotations

import time

from mirror_assets.cli.direct_lake.arguments import Request
from mirror_assets.cli.direct_lake.guardrails import show_guardrails
from mirror_assets.cli.direct_lake.pictures import draw_pictures
from mirror_assets.cli.direct_lake.records import guardrails_record, report_record, vacuum_record
from mirror_assets.cli.direct_lake.report import show_report
from mirror_assets.cli.direct_lake.subject import Subject, subject_of
from mirror_assets.cli.direct_lake.vacuum import show_vacuum
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import show_json
from mirror_assets.direct_lake.guardrails.capacity_fit import Verdict
from mirror_assets.direct_lake.guardrails.skus import SKUS
from mirror_assets.direct_lake.table_report import Keeping, Questions, ReportOptions, table_report
from mirror_assets.direct_lake.vacuum.vacuum_plan import vacuum_of


def report(request: Request, *, as_json: bool) -> Exit:
    """Show all that there is to say of a table."""
    subject = subject_of(request)
    sku, mode = subject.sku, subject.mode
    look = subject.look()
    found = table_report(look, _requested(subject))
    if as_json:
        show_json([report_record(found, sku, mode)])
    else:
        show_report(found, sku, mode)
    if request.pictures is not None:
        draw_pictures(look, request.pictures)
    return Exit.FINE


def vacuum_plan(request: Request, *, as_json: bool) -> Exit:
    """Show what VACUUM would delete; it fails when that is a file that someone needs. Deletes nothing."""
    subject = subject_of(request)
    plan = vacuum_of(subject.log, time.time(), subject.readers())
    if as_json:
        show_json([vacuum_record(plan)])
    else:
        show_vacuum(plan, subject.name)
    return Exit.FINE if plan.is_safe else Exit.FAILED


def guardrails(request: Request, *, as_json: bool) -> Exit:
    """Show how a table fits into capacities; it fails when it is over a limit of the one that counts."""
    subject = subject_of(request)
    sku, mode = subject.sku, subject.mode
    found = subject.look(dictionaries=False).guardrails
    if as_json:
        show_json([guardrails_record(found, sku, mode)])
    else:
        show_guardrails(found, sku, mode)
    is_over = sku is not None and found.table.into(sku).verdict is Verdict.OVER
    return Exit.FAILED if is_over else Exit.FINE


def _requested(subject: Subject) -> ReportOptions:
    request = subject.request
    questions = Questions(
        columns=request.columns,
        one_side=request.one_side,
        partition_by=request.partition_by,
        keeping=_keeping(request),
        sku=subject.sku or SKUS[0],
    )
    readers = subject.readers()
    return ReportOptions(readers, questions, subject.maintenance(readers.mirror))


def _keeping(request: Request) -> Keeping | None:
    """The question for the newest months, if it is asked."""
    if request.date_column is None or request.months is None:
        return None
    return Keeping(request.date_column, request.months)
