"""Reads the last run of each job of this code location, and of each table's assets: those that failed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG, REPOSITORY_LABEL_TAG

from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.conditions import Kind as Conditions
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import BATCH_TAG, Kind, asset_key
from mirror_assets.orchestration.doctor_job import DOCTOR
from mirror_assets.orchestration.jobs import MIRROR_ALL, REBUILD
from mirror_assets.orchestration.run_tags import TABLE_TAG

ASSET_JOB = "__ASSET_JOB"
_NEWEST = 50
# A failure that no schedule repeats counts for a day.
_DAY_SECONDS = 86_400.0
# The resident run has succeeded when it has lasted this long.
_SUCCEEDS_SECONDS = 120.0
_MOST_ANSWERS = 5
_FAILED, _SUCCEEDED, _STARTED = (
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.STARTED,
)


@dataclass(frozen=True)
class _Failure:
    """What failed in a run: a step, or a table in it; for an empty step, the run itself."""

    step: str
    text: str
    at: float
    values: Mapping[str, str] = field(default_factory=dict)
    table: str | None = None


@dataclass
class RunReader:
    """Reads the runs of these jobs, and the log of each failed one once; a schedule repeats those in `scheduled`."""

    jobs: frozenset[str]
    scheduled: frozenset[str]
    _failures: dict[str, list[_Failure]] = field(default_factory=dict)

    def conditions(
        self, instance: dg.DagsterInstance, label: str, tables: Collection[TableName], now: float
    ) -> Iterator[Condition]:
        """Yield what failed in the last run of each kind; `label` is `repository@location`.

        What a job that mirrors says of a table is left out: the landing zone has it.
        """
        names = {str(name) for name in tables}
        by_asset = {asset_key(kind, name): str(name) for name in tables for kind in Kind}
        by_step = {"__".join(key.path): name for key, name in by_asset.items()}
        for job in (*self.jobs, ASSET_JOB):
            since = None if job in self.scheduled else now - _DAY_SECONDS
            for run, kinds in _last_failed(instance, job, label, since, by_asset, now):
                for failure in self._read(instance, run):
                    step = failure.step.removesuffix("_checks").removesuffix("_staged")
                    first = failure.text.partition(": ")[0]
                    table = failure.table or by_step.get(step) or (first if first in names else None)
                    is_ours = table in kinds if job == ASSET_JOB else table is None or table in names
                    if is_ours and not (table is not None and job.startswith("mirror_")):
                        yield _condition(run, failure, table)

    def _read(self, instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[_Failure]:
        if run.run_id not in self._failures:
            self._failures[run.run_id] = list(_failures(instance, run))
        return self._failures[run.run_id]


def newest_success(instance: dg.DagsterInstance, job: str, label: str) -> float:
    """Return when a run of the job last ended well, in seconds since 1970; 0 if none did."""
    found = _runs(instance, job, label, [_SUCCEEDED], None, 1)
    return found[0].end_time or 0.0 if found else 0.0


def _runs(
    instance: dg.DagsterInstance,
    job: str,
    label: str,
    statuses: list[dg.DagsterRunStatus],
    since: float | None,
    limit: int,
) -> Sequence[dg.RunRecord]:
    """Return the newest runs of this code location's job, newest first.

    Dagster tags each run of a code location with its label; runs of the command line have none, and are left out.
    """
    after = None if since is None else datetime.fromtimestamp(since, timezone.utc)
    tags = {REPOSITORY_LABEL_TAG: label}
    wanted = dg.RunsFilter(job_name=job, tags=tags, statuses=statuses, updated_after=after)
    return instance.get_run_records(wanted, limit=limit)


def _last_failed(
    instance: dg.DagsterInstance,
    job: str,
    label: str,
    since: float | None,
    by_asset: Mapping[dg.AssetKey, str],
    now: float,
) -> Iterator[tuple[dg.DagsterRun, set[str]]]:
    """Yield the failed runs that are the last ones of a kind, and these kinds: its tables, for a run of assets."""
    if not _runs(instance, job, label, [_FAILED], since, 1):
        return
    seen = set[str]()
    for record in _runs(instance, job, label, [_FAILED, _SUCCEEDED, _STARTED], since, _NEWEST):
        run = record.dagster_run
        if run.status is _STARTED and (job != MIRROR_ALL or now - (record.start_time or now) < _SUCCEEDS_SECONDS):
            continue
        if job == ASSET_JOB:
            kinds = {by_asset[key] for key in run.asset_selection or () if key in by_asset}
        else:
            tags = (BATCH_TAG, PARTITION_NAME_TAG, *((TABLE_TAG,) if job == REBUILD else ()))
            kinds = {" ".join(run.tags.get(tag, "") for tag in tags).strip()}
        if run.status is _FAILED and kinds - seen:
            yield run, kinds - seen
        seen |= kinds | ({""} if run.status is not _FAILED else set())


def _failures(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[_Failure]:
    """Yield what the run's log has: each step that failed, or each table that a step names; else the run itself."""
    steps = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
    ended = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE).records
    for record in steps or ended:
        event = record.event_log_entry.dagster_event
        if event is None:
            continue
        data = event.step_failure_data if event.is_step_failure else None
        ours, error = (data.user_failure_data, data.error) if data is not None else (None, None)
        text = first_line((error.cause or error).message) if error is not None else event.message
        values = {name: str(value.value) for name, value in ours.metadata.items()} if ours is not None else {}
        by_table = {name: said for name, said in values.items() if said.startswith(f"{name}: ")}
        for table, said in by_table.items():
            yield _Failure(event.step_key or "", said, record.timestamp, table=table)
        if not by_table:
            text = (ours.description if ours is not None else text) or "the run has failed"
            yield _Failure(event.step_key or "", text, record.timestamp, values)


def first_line(message: str) -> str:
    """Return the first line of an error's message, without the path of its class."""
    line = message.strip().partition("\n")[0]
    name, colon, rest = line.partition(": ")
    return rest if colon and rest and "." in name and " " not in name else line


def _condition(run: dg.DagsterRun, failure: _Failure, table: str | None) -> Condition:
    job, text = "assets" if run.job_name == ASSET_JOB else run.job_name, failure.text
    if job == DOCTOR:
        text = "; ".join((text, *(f"{name} {said}" for name, said in list(failure.values.items())[:_MOST_ANSWERS])))
    return Condition(
        id=f"run:{run.job_name}:{run.tags.get(BATCH_TAG, '')}:{failure.step}:{table or ''}",
        kind=Conditions.RUN,
        subject=table or job,
        what="the doctor says no" if job == DOCTOR else f"a run of {job} failed",
        text=text,
        next_step=failure.values.get("next_step") or "open the run, and read the message of the step that failed.",
        code=failure.values.get("code"),
        page=f"runs/{run.run_id}",
        since_ms=int(failure.at * 1000),
    )
