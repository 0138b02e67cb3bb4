"""A table's report: one log, one read of its footers, one plan of a VACUUM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone

from mirror_assets.direct_lake.framing.effect import framing_effect
from mirror_assets.direct_lake.framing.series import framing_series
from mirror_assets.direct_lake.framing.values import FramingEffect, FramingPoint
from mirror_assets.direct_lake.guard.frames import Frame
from mirror_assets.direct_lake.guard.plan import VacuumPlan, plan_vacuum
from mirror_assets.direct_lake.layout.advice import Advice, advice
from mirror_assets.direct_lake.layout.report import LayoutReport
from mirror_assets.direct_lake.maintenance.plan import maintenance_plan
from mirror_assets.direct_lake.maintenance.retention import safe_retention
from mirror_assets.direct_lake.maintenance.values import MaintenancePlan
from mirror_assets.direct_lake.maintenance.writers import WriterSetting
from mirror_assets.direct_lake.questions.answer import Answer
from mirror_assets.direct_lake.report.answers import answers_of
from mirror_assets.direct_lake.report.asked import Asked, Readers
from mirror_assets.direct_lake.report.fitting import Guardrails
from mirror_assets.direct_lake.report.look import TableLook
from mirror_assets.direct_lake.report.writing import settings_for_writers
from mirror_assets.direct_lake.table.log import TableLog
from mirror_assets.direct_lake.types import TypeFinding


@dataclass(frozen=True)
class TableReport:
    """A table at its newest version, committed at `timestamp_ms` (since 1970), as looked at `now` (in seconds).

    `advice` is what its layout calls for, what weighs most first; `types` what Direct Lake can't load. `framing` is
    what a model loads that is framed after each of the last days with a commit, `reframing` what those with the frames
    that were asked about load when they are framed now. `writers` are settings for larger files and row groups, where
    advice calls for them.
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
    framing: tuple[FramingPoint, ...]
    reframing: tuple[FramingEffect, ...]
    maintenance: MaintenancePlan
    writers: tuple[WriterSetting, ...]


def table_report(look: TableLook, requested: Asked | None = None) -> TableReport:
    """The report.

    Raises FrameRefused, ColumnUnknown, NotADate, SchemaUnreadable, PropertyUnreadable, FabricNameRefused, CacheUnusable
    (SettingError), LiveFileMissing and FooterUnreadable (StopError), and what the log raises.
    """
    requested, log, now = requested or Asked(), look.log, look.now
    snapshot, vacuum = log.snapshot(), vacuum_of(log, now, requested.readers)
    advised, maintenance = advice(look.layout), _maintenance(look, requested, vacuum)
    return TableReport(
        name=look.name,
        uri=log.uri,
        version=snapshot.version,
        timestamp_ms=snapshot.timestamp_ms,
        now=now,
        guardrails=look.guardrails,
        layout=look.layout,
        advice=advised,
        types=look.types(requested.questions.one_side),
        vacuum=vacuum,
        answers=tuple(answers_of(log, look.footers, look.layout, requested.questions, _day(now))),
        framing=framing_series(look.history, look.history.daily_versions()),
        reframing=tuple(_reframing(log, requested.readers.frames)),
        maintenance=maintenance,
        writers=settings_for_writers(maintenance.table, advised, requested.maintenance, look.layout.writers),
    )


def vacuum_of(log: TableLog, now: float, readers: Readers) -> VacuumPlan:
    """The plan of a VACUUM at `now`, for these readers. Raises FrameRefused, PropertyUnreadable."""
    return plan_vacuum(log, now, readers.frames, readers.mirror, readers.retain_hours)


def _reframing(log: TableLog, frames: Iterable[Frame]) -> Iterator[FramingEffect]:
    """Of frames that can still be put together."""
    framed = {frame.version for frame in frames}.intersection(log.versions())
    for snapshot in log.snapshots(framed):
        yield framing_effect(snapshot, log.snapshot())


def _maintenance(look: TableLook, requested: Asked, vacuum: VacuumPlan) -> MaintenancePlan:
    """VACUUM is planned as the table's properties have it, whatever RETAIN `vacuum` was asked about."""
    plain = replace(requested.readers, retain_hours=None)
    guard = vacuum if plain == requested.readers else vacuum_of(look.log, look.now, plain)
    wanted = replace(requested.maintenance, dropped=look.dropped_bytes, retention=safe_retention(guard))
    return maintenance_plan(look.log.snapshot(), wanted)


def _day(now: float) -> date:
    return datetime.fromtimestamp(now, timezone.utc).date()
