"""What the commands print for machines."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.direct_lake.advice import Advice
from mirror_assets.direct_lake.column_questions import Answer
from mirror_assets.direct_lake.framing import FramingEffect, FramingPoint
from mirror_assets.direct_lake.guardrails.capacity_fit import Fitting, Guardrails, SkuFit, Use, Verdict
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.skus import SOURCE, SOURCE_DATE, Mode, Sku
from mirror_assets.direct_lake.maintenance.plan_values import MaintenancePlan
from mirror_assets.direct_lake.maintenance.writer_settings import WriterSetting
from mirror_assets.direct_lake.table_layout import LayoutReport
from mirror_assets.direct_lake.table_report import DirectLakeReport
from mirror_assets.direct_lake.type_rules import TypeIssue
from mirror_assets.direct_lake.vacuum.vacuum_plan import VacuumPlan


@dataclass(frozen=True)
class VacuumRecord:
    """A plan, and its two conclusions."""

    is_safe: bool
    deleted_bytes: int
    plan: VacuumPlan


@dataclass(frozen=True)
class FitRecord:
    """One capacity."""

    sku: str
    verdict: Verdict
    days_left: float | None
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class FittingRecord:
    """A table, or its mirror as predicted; `smallest` is the smallest capacity that it surely fits into."""

    figures: TableFigures
    smallest: str | None
    fits: tuple[FitRecord, ...]


@dataclass(frozen=True)
class GuardrailsRecord:
    """The guardrails, by limits of this source and date."""

    source: str
    source_date: str
    mode: Mode
    table: FittingRecord
    mirror: FittingRecord | None


@dataclass(frozen=True)
class ReportRecord:
    """The whole report."""

    name: str
    uri: str
    version: int
    timestamp_ms: int
    now: float
    guardrails: GuardrailsRecord
    layout: LayoutReport
    advice: tuple[Advice, ...]
    types: tuple[TypeIssue, ...]
    vacuum: VacuumRecord
    answers: tuple[Answer, ...]
    framing: tuple[FramingPoint, ...]
    reframing: tuple[FramingEffect, ...]
    maintenance: MaintenancePlan
    writers: tuple[WriterSetting, ...]


def vacuum_record(plan: VacuumPlan) -> VacuumRecord:
    """The plan's."""
    return VacuumRecord(plan.is_safe, plan.deleted_bytes, plan)


def guardrails_record(found: Guardrails, sku: Sku | None, mode: Mode) -> GuardrailsRecord:
    """The guardrails of the capacity, or of all."""
    mirror = None if found.mirror is None else _fitting(found.mirror, sku)
    return GuardrailsRecord(SOURCE, SOURCE_DATE, mode, _fitting(found.table, sku), mirror)


def report_record(report: DirectLakeReport, sku: Sku | None, mode: Mode) -> ReportRecord:
    """The report's."""
    return ReportRecord(
        name=report.name,
        uri=report.uri,
        version=report.version,
        timestamp_ms=report.timestamp_ms,
        now=report.now,
        guardrails=guardrails_record(report.guardrails, sku, mode),
        layout=report.layout,
        advice=report.advice,
        types=report.types,
        vacuum=vacuum_record(report.vacuum),
        answers=report.answers,
        framing=report.framing,
        reframing=report.reframing,
        maintenance=report.maintenance,
        writers=report.writers,
    )


def _fitting(fitting: Fitting, sku: Sku | None) -> FittingRecord:
    fits = fitting.fits if sku is None else (fitting.into(sku),)
    smallest = fitting.smallest
    return FittingRecord(fitting.figures, smallest.name if smallest else None, tuple(map(_fit, fits)))


def _fit(fit: SkuFit) -> FitRecord:
    return FitRecord(fit.sku.name, fit.verdict, fit.days_left, fit.uses)
