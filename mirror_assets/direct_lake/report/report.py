"""A table's report: one log, one read of its footers, one plan of a VACUUM."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone

from mirror_assets.direct_lake.footers.reader import FooterReader
from mirror_assets.direct_lake.guard.plan import VacuumPlan, plan_vacuum
from mirror_assets.direct_lake.layout.advice import Advice, advice
from mirror_assets.direct_lake.layout.report import LayoutReport
from mirror_assets.direct_lake.questions.answer import Answer
from mirror_assets.direct_lake.report.answers import answers_of
from mirror_assets.direct_lake.report.asked import Asked, Readers
from mirror_assets.direct_lake.report.fitting import Guardrails
from mirror_assets.direct_lake.report.look import TableLook
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.types import TypeFinding


@dataclass(frozen=True)
class TableReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as looked at `now` (in seconds).

    `advice` is what its layout calls for, what weighs most first; `types` what Direct Lake can't load.
    """

    name: str
    uri: str
    version: int
    timestamp_ms: int
    now: float
    guardrails: Guardrails
    layout: LayoutReport
    advice: tuple[Advice, ...]
    types: tuple[TypeFinding, ...]
    vacuum: VacuumPlan
    answers: tuple[Answer, ...]


def table_report(log: TableLog, reader: FooterReader, now: float, asked: Asked | None = None) -> TableReport:
    """The report at `now` (seconds since 1970); `reader` reads footers of the log's table.

    Raises FrameRefused, ColumnUnknown, NotADate, SchemaUnreadable, PropertyUnreadable (SettingError), LiveFileMissing
    and FooterUnreadable (StopError), CacheUnusable (SettingError), and what the log raises.
    """
    asked = asked or Asked()
    snapshot, name = log.snapshot(), asked.name or log.uri
    vacuum = vacuum_of(log, now, asked.readers)
    look = TableLook(name, log, reader, now, asked.growth_days)
    return TableReport(
        name=name,
        uri=log.uri,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        now=now,
        guardrails=look.guardrails,
        layout=look.layout,
        advice=advice(look.layout),
        types=look.types(asked.questions.one_side),
        vacuum=vacuum,
        answers=tuple(answers_of(log, look.footers, look.layout, asked.questions, _day(now))),
    )


def vacuum_of(log: TableLog, now: float, readers: Readers) -> VacuumPlan:
    """The plan of a VACUUM at `now`, for these readers. Raises FrameRefused, PropertyUnreadable."""
    return plan_vacuum(log, now, readers.frames, readers.mirror, readers.retain_hours)


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()
