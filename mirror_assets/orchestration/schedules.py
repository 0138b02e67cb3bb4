"""Whether sensors and schedules run by default, and the schedules of jobs that nothing triggers."""

import os
import time
from collections.abc import Mapping

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.orchestration.check_jobs import CHECKS, RECONCILE
from mirror_assets.orchestration.check_runs import LONGEST_SECONDS
from mirror_assets.orchestration.dagster_internals import Job
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.old_runs import DELETE_OLD_RUNS
from mirror_assets.orchestration.runs import BUSY, mirror_tags

SENSORS_VARIABLE = "MIRROR_SENSORS"


def is_on() -> bool:
    """Return whether MIRROR_SENSORS is `on`, as `make dev` sets it; else sensors and schedules are off."""
    return os.environ.get(SENSORS_VARIABLE, "off").lower() == "on"


def default_sensor_status() -> dg.DefaultSensorStatus:
    """Return whether sensors run by default: only if MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


# A run that takes longer has lost its process: it is recorded as failed, and no longer blocks its schedule. Dagster's
# own run monitoring may be off.
_NIGHT_SECONDS, _CHECKS_SECONDS = 6 * 3600.0, 2 * LONGEST_SECONDS
# A process that Dagster has asked for has started within this time, or never does. A queued run waits for others.
_START_SECONDS = 900.0
_CRON = {DELETE_OLD_RUNS: "45 4 * * *"}


def job_schedules(assets: MirrorAssets, jobs: Mapping[str, Job]) -> list[dg.ScheduleDefinition]:
    """Return the schedules of the jobs that exist; `jobs` has them by their full names."""
    named = _CRON | check_crons(assets.config)
    for feature in assets.config.all_features:
        named |= {name: timetable.cron for name, timetable in feature.timetables().items()}
    crons = {assets.full_name(name): cron for name, cron in named.items()}
    return [_schedule(assets, name, cron, jobs[name]) for name, cron in crons.items() if name in jobs]


def check_crons(settings: Config) -> dict[str, str]:
    """Return when the jobs of checks run, in UTC; a job whose setting is null is left out."""
    automation = settings.automation
    minutes, hours = automation.checks_minutes(len(settings.tables)), automation.reconcile_every_hours
    every_minutes = {} if minutes is None else {CHECKS: "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"}
    # Before the jobs of features, which have a Spark of their own.
    every_hours = {} if hours is None else {RECONCILE: "30 1 * * *" if hours == 24 else f"30 */{hours} * * *"}
    return every_minutes | every_hours


def _schedule(assets: MirrorAssets, name: str, cron: str, job: Job) -> dg.ScheduleDefinition:
    """Return a schedule that skips a run while the previous one is in progress, so that runs don't queue up.

    A tag identifies its runs among those of other mirror.yaml in the instance: a schedule can't see its code location.
    """
    status = dg.DefaultScheduleStatus.RUNNING if is_on() else dg.DefaultScheduleStatus.STOPPED
    mirror = mirror_tags(assets.config)
    limit = _CHECKS_SECONDS if name == assets.full_name(CHECKS) else _NIGHT_SECONDS

    @dg.schedule(name=name, job=job, cron_schedule=cron, default_status=status, description=job.description)
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        busy = dg.RunsFilter(job_name=name, statuses=BUSY, tags=mirror)
        in_progress = [
            record.dagster_run
            for record in context.instance.get_run_records(busy)
            if not _end_lost(context.instance, record, limit)
        ]
        if in_progress:
            return dg.SkipReason(f"the previous run is in progress: {in_progress[0].run_id}")
        return dg.RunRequest(tags=mirror | {dg.MAX_RUNTIME_SECONDS_TAG: str(round(limit))})

    return schedule


def _end_lost(instance: dg.DagsterInstance, record: dg.RunRecord, limit: float) -> bool:
    """Record a run as failed whose process has ended or never started; return whether it was."""
    run, now = record.dagster_run, time.time()
    if run.status is dg.DagsterRunStatus.QUEUED:
        return False
    began = record.start_time or record.create_timestamp.timestamp()
    has_started = run.status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
    longest = limit if has_started else _START_SECONDS
    if now - began <= longest:
        return False
    why = "it has not ended" if has_started else "its process has not started"
    instance.report_run_failed(run, f"{why} within {longest / 60:.0f} minutes: its process or its machine was lost")
    return True
