"""Reads the last run of each job of this code location, and of each table's assets: those that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import NamedTuple

import dagster as dg

from mirror_assets.alerts.conditions import Condition, ConditionKind, with_next
from mirror_assets.orchestration.alert_checks import assets_of
from mirror_assets.orchestration.asset_names import BATCH_TAG, AssetKind, step_name
from mirror_assets.orchestration.dagster_internals import PARTITION_NAME_TAG
from mirror_assets.orchestration.jobs import MIRROR_ALL, MIRROR_SCHEMA, MIRROR_TABLE, REBUILD
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.run_tags import TABLE_TAG, Location

ASSET_JOB = "__ASSET_JOB"
_NEWEST = 200
# Up to this many failed runs, one query finds the jobs that have failed; each other job would cost another one.
_FEW = 20
# A failure that no schedule repeats counts for a day.
_DAY_SECONDS = 86_400.0
# The resident run has succeeded when it has lasted this long.
_SUCCEEDS_SECONDS = 120.0
_FAILED, SUCCEEDED, _STARTED = map(dg.DagsterRunStatus, ("FAILURE", "SUCCESS", "STARTED"))


class _Failure(NamedTuple):
    """What failed in a run: a step, or for an empty one the run itself; `values` is the metadata of our own errors."""

    step: str
    text: str
    values: Mapping[str, str]
    at: float


@dataclass
class RunReader:
    """Reads the runs of these jobs, and the log of each failed one once; a schedule repeats those in `scheduled`."""

    jobs: frozenset[str]
    scheduled: frozenset[str]
    _failures: dict[str, list[_Failure]] = field(default_factory=dict)

    def conditions(
        self, instance: dg.DagsterInstance, location: Location, assets: MirrorAssets, now: float
    ) -> Iterator[Condition]:
        """Yield what failed in the last run of each kind.

        What a job that mirrors reports of a table is left out: the landing zone has it.
        """
        by_asset, names = assets_of(assets), {str(name) for name in assets.config.names}
        by_step = {step_name(key): table for key, (_, table) in by_asset.items()}
        mirroring = {assets.full_name(job) for job in (MIRROR_ALL, MIRROR_SCHEMA, MIRROR_TABLE)}
        jobs, failed = {*self.jobs, ASSET_JOB}, newest_runs(instance, location, None, _FAILED, limit=_FEW)
        if len(failed) < _FEW:  # these are all
            jobs &= {record.dagster_run.job_name for record in failed}
        for job in sorted(jobs):
            since = None if job in self.scheduled else now - _DAY_SECONDS
            if not newest_runs(instance, location, job, _FAILED, since=since):
                continue
            # The runs of a schedule are of one kind. The resident run has succeeded when it has lasted for a while.
            statuses = (_FAILED, SUCCEEDED, *((_STARTED,) if job == assets.full_name(MIRROR_ALL) else ()))
            limit = 1 if since is None else _NEWEST
            runs = newest_runs(instance, location, job, *statuses, since=since, limit=limit)
            for run, kinds in _last_failed(runs, by_asset, assets.full_name(REBUILD), now):
                if run.run_id not in self._failures:
                    self._failures[run.run_id] = list(_read(instance, run))
                for failure in self._failures[run.run_id]:
                    named = [name for name in failure.values if name in names]
                    step = failure.step.removesuffix("_checks").removesuffix("_staged")
                    table = by_step.get(step) or failure.text.partition(": ")[0]
                    is_ours = table in kinds or job != ASSET_JOB
                    if is_ours and not (job in mirroring and (named or table in names)):
                        yield from (_condition(run, failure, one, failure.values[one]) for one in named)
                        if not named:
                            yield _condition(run, failure, table if table in names else None, failure.text)


def newest_runs(
    instance: dg.DagsterInstance,
    location: Location,
    job: str | None,
    *statuses: dg.DagsterRunStatus,
    since: float | None = None,
    limit: int = 1,
) -> Sequence[dg.RunRecord]:
    """Return the newest runs of a job, or of all, with these statuses; `since` leaves out those of earlier times."""
    after = None if since is None else datetime.fromtimestamp(since, timezone.utc)
    filters = dg.RunsFilter(job_name=job, tags=location.tags, statuses=list(statuses), updated_after=after)
    return instance.get_run_records(filters, limit=limit)


def _last_failed(
    runs: Sequence[dg.RunRecord], by_asset: Mapping[dg.AssetKey, tuple[AssetKind, str]], rebuild: str, now: float
) -> Iterator[tuple[dg.DagsterRun, set[str]]]:
    """Yield the failed runs that are the last ones of a kind, and these kinds: its tables, for a run of assets."""
    seen = set[str]()
    for record in runs:
        run = record.dagster_run
        if run.status is _STARTED and now - (record.start_time or now) < _SUCCEEDS_SECONDS:
            continue
        if run.job_name == ASSET_JOB:
            kinds = {by_asset[key][1] for key in run.asset_selection or () if key in by_asset}
        else:
            tags = (BATCH_TAG, PARTITION_NAME_TAG, *((TABLE_TAG,) if run.job_name == rebuild else ()))
            kinds = {" ".join(run.tags.get(tag, "") for tag in tags).strip()}
        if run.status is _FAILED and kinds - seen:
            yield run, kinds - seen
        seen |= kinds | ({""} if run.status is not _FAILED else set())


def _read(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[_Failure]:
    """Yield what the run's log has: each step that failed, or else the run itself."""
    failed = (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE)
    steps, ended = (instance.get_records_for_run(run.run_id, of_type=kind).records for kind in failed)
    for record in steps or ended:
        event = record.event_log_entry.dagster_event
        if event is None:
            continue
        data = event.step_failure_data if event.is_step_failure else None
        ours, error = (data.user_failure_data, data.error) if data is not None else (None, None)
        text = first_line((error.cause or error).message) if error is not None else event.message
        values = {name: str(value.value) for name, value in ours.metadata.items()} if ours is not None else {}
        text = (ours.description if ours is not None else text) or "the run has failed"
        yield _Failure(event.step_key or "", text, values, record.timestamp)


def first_line(message: str) -> str:
    """Return the first line of an error's message, without the path of its class."""
    line = message.strip().partition("\n")[0]
    name, colon, rest = line.partition(": ")
    return rest if colon and rest and "." in name and " " not in name else line


def _condition(run: dg.DagsterRun, failure: _Failure, table: str | None, text: str) -> Condition:
    job, values = "assets" if run.job_name == ASSET_JOB else run.job_name, failure.values
    step = values.get("next_step") or "open the run, and read the message of the step that failed."
    key = f"run:{run.job_name}:{run.tags.get(BATCH_TAG, '')}:{failure.step}:{table or ''}"
    what, since_ms, page = f"a run of {job} failed", int(failure.at * 1000), f"runs/{run.run_id}"
    text, code = with_next(text, step), values.get("code")
    return Condition(key, ConditionKind.RUN, table or job, what, text, code=code, page=page, since_ms=since_ms)
