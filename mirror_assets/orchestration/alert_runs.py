"""Reads failed runs since the last look, as conditions of the steps that failed, and finds those that went well since.

A run is an event, no state: its failure has ended when the same step has succeeded in a later run, or after a day
without another failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

import dagster as dg

from mirror_assets.alerts.causes import cause_of, split_next
from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import RUN
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.orchestration.doctor_job import DOCTOR
from mirror_assets.orchestration.jobs import MIRROR_ALL

_RUNS_AT_ONCE = 50
_LATER_RUNS = 20
_DAY_MS = 86_400_000
# A run that stays goes well when it has lasted so long.
_GOES_WELL_SECONDS = 120.0
_NO_ANSWERS = 5


@dataclass(frozen=True)
class TableNames:
    """The tables by what names them: the steps of their assets, and the beginning of their errors' messages."""

    by_step: Mapping[str, str]
    names: frozenset[str]

    def of(self, step: str, text: str) -> str | None:
        """Return the table that a step's failure is about, or None."""
        told = text.partition(": ")[0]
        return self.by_step.get(step) or (told if told in self.names else None)


@dataclass(frozen=True)
class RunNews:
    """The failures of runs since the last look, and how far it goes."""

    read_to: str
    failing: tuple[Condition, ...]


def read_runs(instance: dg.DagsterInstance, after: str | None, tables: TableNames) -> RunNews:
    """Return what failed in runs that failed behind the event `after`; without one, nothing: it begins now."""
    failed = dg.DagsterEventType.RUN_FAILURE
    if after is None:
        newest = instance.fetch_run_status_changes(failed, limit=1)
        return RunNews(newest.cursor, ())
    found = instance.fetch_run_status_changes(failed, limit=_RUNS_AT_ONCE, cursor=after, ascending=True)
    failures: list[Condition] = []
    for record in found.records:
        run = instance.get_run_by_id(record.run_id)
        if run is not None:
            failures += _failures(instance, run, record, tables)
    return RunNews(found.cursor, tuple(failures))


def without_ended(instance: dg.DagsterInstance, known: Mapping[str, Condition], now: float) -> dict[str, Condition]:
    """Return what is wrong without failures of runs that have ended."""
    jobs = {condition.id.split(":")[1] for condition in known.values() if condition.id.startswith(RUN)}
    later = {job: _Later(instance, job, now) for job in jobs}
    return {
        key: condition
        for key, condition in known.items()
        if not key.startswith(RUN) or not _has_ended(condition, later[key.split(":")[1]], now)
    }


def _has_ended(condition: Condition, later: _Later, now: float) -> bool:
    if now * 1000 - condition.since_ms > _DAY_MS:
        return True
    return later.has_succeeded(condition.id.split(":")[2], condition.since_ms / 1000)


class _Later:
    """The newest runs of a job that went well."""

    def __init__(self, instance: dg.DagsterInstance, job: str, now: float) -> None:
        self._instance, self._job, self._now = instance, job, now
        statuses = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.STARTED]
        since = datetime.fromtimestamp(now - _DAY_MS / 1000, timezone.utc)
        filters = dg.RunsFilter(job_name=job, statuses=statuses, updated_after=since)
        self._records = list(instance.get_run_records(filters, limit=_LATER_RUNS))

    def has_succeeded(self, step: str, since: float) -> bool:
        """Return whether the step has succeeded in a run that began after `since`, in seconds since 1970."""
        return any((record.start_time or 0.0) > since and self._is_well(record, step) for record in self._records)

    def _is_well(self, record: dg.RunRecord, step: str) -> bool:
        if record.dagster_run.status is dg.DagsterRunStatus.STARTED:
            return self._job == MIRROR_ALL and self._now - (record.start_time or self._now) > _GOES_WELL_SECONDS
        if not step:
            return True
        done = self._instance.get_records_for_run(
            record.dagster_run.run_id, of_type=dg.DagsterEventType.STEP_SUCCESS
        ).records
        return any(_step(one) == step for one in done)


def _step(record: dg.EventLogRecord) -> str:
    event = record.event_log_entry.dagster_event
    return event.step_key or "" if event is not None else ""


def _failures(
    instance: dg.DagsterInstance, run: dg.DagsterRun, record: dg.EventLogRecord, tables: TableNames
) -> Iterator[Condition]:
    """Yield what has failed in the run: each step, or each table that a step names; else the run itself."""
    steps = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
    for one in steps:
        event = one.event_log_entry.dagster_event
        if event is not None and event.is_step_failure:
            yield from _of_step(run, event, record.timestamp, tables)
    if not steps:
        event = record.event_log_entry.dagster_event
        text = (event.message if event is not None else None) or "the run has failed"
        yield _condition(run, "", _Said(text), record.timestamp, tables)


@dataclass(frozen=True)
class _Said:
    """What a failure says of itself."""

    text: str
    code: str | None = None
    next_step: str = ""
    table: str | None = None


def _of_step(run: dg.DagsterRun, event: dg.DagsterEvent, at: float, tables: TableNames) -> Iterator[Condition]:
    step, data = event.step_key or "", event.step_failure_data
    told = data.user_failure_data
    if told is None:
        error = data.error
        text = _first_line(error.cause or error) if error is not None else "the step has failed"
        yield _condition(run, step, _Said(text), at, tables)
        return
    said = {name: str(value.value) for name, value in told.metadata.items()}
    of_tables = [name for name in said if name in tables.names]
    for name in of_tables:
        yield _condition(run, step, _Said(said[name], table=name), at, tables)
    if not of_tables:
        text = told.description or f"the step {step} has failed"
        if run.job_name == DOCTOR:
            text = "; ".join((text, *(f"{name} {value}" for name, value in list(said.items())[:_NO_ANSWERS])))
        yield _condition(run, step, _Said(text, said.get("code"), said.get("next_step", "")), at, tables)


def _first_line(error: object) -> str:
    """Return what an error says, without its class's path."""
    message = str(getattr(error, "message", error)).strip().partition("\n")[0]
    kind, colon, rest = message.partition(": ")
    return rest if colon and rest and "." in kind and " " not in kind else message


def _condition(run: dg.DagsterRun, step: str, said: _Said, at: float, tables: TableNames) -> Condition:
    what, next_step = split_next(said.text)
    table = said.table or tables.of(step, what)
    is_doctor = run.job_name == DOCTOR
    cause = cause_of(said.code, f"run of {run.job_name}", what, table or "")
    return Condition(
        id=f"{RUN}{run.job_name}:{step}:{table or ''}",
        topic=Topic.DOCTOR if is_doctor else Topic.RUN,
        severity=Severity.ERROR,
        cause=cause.key,
        subject=table or run.job_name,
        what="the doctor says no" if is_doctor else f"a run of {_job_shown(run)} failed",
        text=what,
        next_step=said.next_step or next_step or "open the run, and read the message of the step that failed.",
        code=said.code,
        page=f"runs/{run.run_id}",
        since_ms=int(at * 1000),
        joins=cause.joins,
    )


def _job_shown(run: dg.DagsterRun) -> str:
    return "assets" if run.job_name.startswith("__") else run.job_name
