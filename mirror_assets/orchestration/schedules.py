"""Whether sensors and schedules run by default, and the schedules of jobs that nothing triggers."""

import os
from collections.abc import Mapping

import dagster as dg

from mirror_assets.config import Config
from mirror_assets.direct_lake.maintenance_job import MAINTENANCE
from mirror_assets.orchestration.check_tables import CHECKS, RECONCILE
from mirror_assets.orchestration.dagster_internals import UnresolvedAssetJobDefinition
from mirror_assets.orchestration.jobs import HISTORY
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.old_runs import DELETE_OLD_RUNS
from mirror_assets.orchestration.run_records import BUSY
from mirror_assets.orchestration.run_tags import MIRROR_TAG
from mirror_assets.pipeline.batch_runner import tables_digest

SENSORS_VARIABLE = "MIRROR_SENSORS"


def is_on() -> bool:
    """Return whether MIRROR_SENSORS is `on`, as `make dev` sets it; else sensors and schedules are off."""
    return os.environ.get(SENSORS_VARIABLE, "off").lower() == "on"


def default_sensor_status() -> dg.DefaultSensorStatus:
    """Return whether sensors run by default: only if MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


# Dagster ends a scheduled run that takes longer: one whose process was killed would block its schedule for a day.
_NIGHT_SECONDS = 6 * 3600
_CRON = {
    # Every night: the feed of a commit can be read for a week by default, so several nights may be missed.
    HISTORY: "0 3 * * *",
    # Sundays, after the histories: models reload rewritten files, so rarely is better (reference `direct-lake` §4).
    MAINTENANCE: "0 5 * * 0",
    DELETE_OLD_RUNS: "45 4 * * *",
}


def job_schedules(
    assets: MirrorAssets, jobs: Mapping[str, dg.JobDefinition | UnresolvedAssetJobDefinition]
) -> list[dg.ScheduleDefinition]:
    """Return the schedules of the jobs that exist; `jobs` has them by their full names."""
    crons = {assets.full_name(name): cron for name, cron in (_CRON | check_crons(assets.config)).items()}
    return [_schedule(assets.config, name, cron, jobs[name]) for name, cron in crons.items() if name in jobs]


def check_crons(settings: Config) -> dict[str, str]:
    """Return when the jobs of checks run, in UTC; a job whose setting is null is left out."""
    automation = settings.automation
    minutes, hours = automation.checks_minutes(len(settings.tables)), automation.reconcile_every_hours
    every_minutes = {} if minutes is None else {CHECKS: "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"}
    # Before the histories and maintenance, which have a Spark of their own.
    every_hours = {} if hours is None else {RECONCILE: "30 1 * * *" if hours == 24 else f"30 */{hours} * * *"}
    return every_minutes | every_hours


def _schedule(
    settings: Config, name: str, cron: str, job: dg.JobDefinition | UnresolvedAssetJobDefinition
) -> dg.ScheduleDefinition:
    """Return a schedule that skips a run while the previous one is in progress, so that runs don't queue up.

    A tag identifies its runs among those of other mirror.yaml in the instance: a schedule can't see its code location.
    """
    status = dg.DefaultScheduleStatus.RUNNING if is_on() else dg.DefaultScheduleStatus.STOPPED
    mirror = {MIRROR_TAG: tables_digest([settings.landing_zone.model_dump_json(), *settings.tables])}
    limit = (
        {} if dg.MAX_RUNTIME_SECONDS_TAG in (job.tags or {}) else {dg.MAX_RUNTIME_SECONDS_TAG: str(_NIGHT_SECONDS)}
    )  # the job of checks has its own

    @dg.schedule(name=name, job=job, cron_schedule=cron, default_status=status, description=job.description)
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if context.instance.get_runs(dg.RunsFilter(job_name=name, statuses=BUSY, tags=mirror), limit=1):
            return dg.SkipReason("the previous run is in progress")
        return dg.RunRequest(tags=mirror | limit)

    return schedule
