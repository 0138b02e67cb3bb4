"""Whether sensors and schedules run by default, and the schedules of jobs that nothing triggers."""

import os
from collections.abc import Mapping

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from mirror_assets.orchestration.jobs import HISTORY
from mirror_assets.orchestration.maintenance import MAINTENANCE

SENSORS_VARIABLE = "MIRROR_SENSORS"


def is_on() -> bool:
    """Return whether MIRROR_SENSORS is `on`, as `make dev` sets it; else sensors and schedules are off."""
    return os.environ.get(SENSORS_VARIABLE, "off").lower() == "on"


def default_sensor_status() -> dg.DefaultSensorStatus:
    """Return whether sensors run by default: only if MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


_CRON = {
    # Every night: the feed of a commit can be read for a week by default, so several nights may be missed.
    HISTORY: "0 3 * * *",
    # Sundays, behind that: models load again what is rewritten, so seldom is better (reference `direct-lake` §4).
    MAINTENANCE: "0 5 * * 0",
}


def job_schedules(
    jobs: Mapping[str, dg.JobDefinition | UnresolvedAssetJobDefinition],
) -> list[dg.ScheduleDefinition]:
    """Return the schedules of the jobs that exist, by name."""
    status = dg.DefaultScheduleStatus.RUNNING if is_on() else dg.DefaultScheduleStatus.STOPPED
    return [
        dg.ScheduleDefinition(name=name, job=jobs[name], cron_schedule=cron, default_status=status)
        for name, cron in _CRON.items()
        if name in jobs
    ]
