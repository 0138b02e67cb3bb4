"""The sensor of a table: level-triggered, so that nothing it once missed stays missed.

Pending is what log and manifest say, never what Dagster remembers. There is no cursor and no run key: both have
swallowed runs elsewhere (docs/decisions/0005).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from mirror_assets.assets.mirror import mirror_observation
from mirror_assets.assets.names import (
    FAILED_SLICE_TAG,
    RANGE_END,
    RANGE_START,
    REBUILD_TAG,
    TABLE_TAG,
    flat_name,
    slices_of,
)
from mirror_assets.assets.source import source_observation
from mirror_assets.automation.jobs import REBUILD, REBUILD_OP, REPLICATE, Job, slices_job_name
from mirror_assets.automation.switch import is_on
from mirror_assets.config import Config, TableSettings
from mirror_assets.delta.plan import PlannedSlice
from mirror_assets.errors import RebuildError, RetryError, UnknownOutcome
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.recover import recover
from mirror_assets.landing.steps import drive
from mirror_assets.mirroring.errors import stop_error
from mirror_assets.mirroring.mirrors import stand_in
from mirror_assets.mirroring.planning import TablePlan, plan_table
from mirror_assets.mirroring.rebuild import may_rebuild
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import mirror_of, planning_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables

_INTERVAL_SECONDS = 15
_REPLICATE_SECONDS = 20
_OBSERVE_SECONDS = 300
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 30, 3600
_RUNS_LOOKED_AT = 10
_BUSY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Failures:
    """The table's newest runs that failed in a row: how many, when the last ended, at which slice, why to rebuild."""

    count: int = 0
    ended: float = 0.0
    slice: str | None = None
    rebuild: str | None = None

    def pause_left(self, now: float) -> float:
        """Seconds to wait still: twice as long after each failure, up to an hour."""
        if self.count == 0:
            return 0.0
        pause: float = min(_FIRST_PAUSE_SECONDS * 2 ** (self.count - 1), _LONGEST_PAUSE_SECONDS)
        return max(0.0, self.ended + pause - now)


def default_status() -> dg.DefaultSensorStatus:
    """Off, unless MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


def slices_sensor(settings: Config, table: TableSettings, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """The sensor that registers a table's pending slices and asks for one run of them."""

    @dg.sensor(
        name=f"slices_{flat_name(table.name)}",
        jobs=[jobs[slices_job_name(table.name)], jobs[REBUILD]],
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=default_status(),
        description=f"Polls the log of {table.source}.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, landing_zone: LandingZone, sources: SourceTables
    ) -> dg.SensorResult | dg.SkipReason:
        return _tick(context.instance, planning_work(settings, table, landing_zone, sources))

    return sensor


def replicator_sensor(settings: Config, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """The sensor that moves the local stand-in on, or that asks Fabric how far it is."""
    return _stand_in_sensor(settings, jobs) if settings.mirror.fabric is None else _fabric_sensor(settings)


def _stand_in_sensor(settings: Config, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """Lets the stand-in poll when a landing file waits for it, one run at a time."""

    @dg.sensor(
        name="replicator",
        job=jobs[REPLICATE],
        minimum_interval_seconds=_REPLICATE_SECONDS,
        default_status=default_status(),
        description="Runs the local stand-in for Fabric's replicator.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing_zone: LandingZone) -> dg.RunRequest | dg.SkipReason:
        if context.instance.get_runs(dg.RunsFilter(job_name=REPLICATE, statuses=_BUSY), limit=1):
            return dg.SkipReason("it is polling")
        waits = stand_in(settings, landing_zone.store()).has_work()
        return dg.RunRequest() if waits else dg.SkipReason("no landing file waits")

    return sensor


def _fabric_sensor(settings: Config) -> dg.SensorDefinition:
    """Observes the mirrors without a run; seldom, because each question costs a listing of every table folder."""

    @dg.sensor(
        name="replicator",
        minimum_interval_seconds=_OBSERVE_SECONDS,
        default_status=default_status(),
        description="Asks Fabric what it has applied.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing_zone: LandingZone) -> dg.SensorResult | dg.SkipReason:
        try:
            statuses = mirror_of(settings, landing_zone).status()
        except RetryError as error:
            return dg.SkipReason(str(error))
        ours = [status for status in statuses if status.name in settings.names]
        context.log.info(f"Fabric mirrors {len(ours)} of {len(settings.names)} tables")
        return dg.SensorResult(asset_events=[mirror_observation(status) for status in ours])

    return sensor


def _tick(instance: dg.DagsterInstance, work: TableWork) -> dg.SensorResult | dg.SkipReason:
    """What to ask for now. What a person has to mend fails the tick, so that it is seen."""
    tags = {TABLE_TAG: str(work.name)}
    if instance.get_runs(dg.RunsFilter(tags=tags, statuses=_BUSY), limit=1):
        return dg.SkipReason(f"a run of {work.name} is under way")
    failures = recent_failures(instance, tags)
    pause = failures.pause_left(time.time())
    if pause > 0:
        return dg.SkipReason(f"{failures.count} runs of {work.name} failed; next one in {pause:.0f} s")
    try:
        return _pending(instance, work, failures)
    except RebuildError as error:
        return _rebuild(work, error.what)
    except (RetryError, UnknownOutcome) as error:
        return dg.SkipReason(str(error))


def _pending(instance: dg.DagsterInstance, work: TableWork, failures: Failures) -> dg.SensorResult | dg.SkipReason:
    """What the log and the manifest say is to do now; a rebuild that was interrupted comes first."""
    rebuild = drive(read_rebuild(work.name), work.store)
    if rebuild is not None and rebuild.is_running and not rebuild.is_drop:
        return _request_rebuild(work)
    if failures.rebuild is not None:
        return _rebuild(work, failures.rebuild)
    # What was committed before a publisher died gets its numbers now: nothing else may be pending to bring it along.
    drive(recover(work.name), work.store)
    plan = plan_table(work, _boundaries(instance, work))
    if plan.slices:
        return _request(instance, work, plan, failures)
    if plan.stop is not None:
        raise stop_error(work.name, plan.stop)
    return dg.SkipReason(f"{work.name}: version {plan.state.version} is covered")


def _request(instance: dg.DagsterInstance, work: TableWork, plan: TablePlan, failures: Failures) -> dg.SensorResult:
    """New slices registered and observed, and one run for all that may be tried now."""
    pending = _to_try(plan.partitions[: work.table.slices.max_per_run], failures.slice)
    partitions = slices_of(work.name)
    known = set(_registered(instance, work))
    new = [planned for planned in pending if str(slice_key(planned)) not in known]
    keys = [str(slice_key(planned)) for planned in pending]
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                job_name=slices_job_name(work.name),
                tags={RANGE_START: keys[0], RANGE_END: keys[-1], TABLE_TAG: str(work.name)},
            )
        ],
        dynamic_partitions_requests=[partitions.build_add_request([str(slice_key(planned)) for planned in new])],
        asset_events=[source_observation(work.name, plan.state, planned) for planned in new],
    )


def _to_try(pending: Sequence[PlannedSlice], failed: str | None) -> Sequence[PlannedSlice]:
    """Slices up to the one that failed last, which is tried alone: mended or not, only a run can tell."""
    for index, planned in enumerate(pending):
        if str(slice_key(planned)) == failed:
            return pending[: max(index, 1)]
    return pending


def _rebuild(work: TableWork, why: str) -> dg.SensorResult | dg.SkipReason:
    if not may_rebuild(work):
        return dg.SkipReason(f"{work.name} is held for approval: {why}; run the job `{REBUILD}` to go on")
    return _request_rebuild(work)


def _request_rebuild(work: TableWork) -> dg.SensorResult:
    run_config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(work.name)}}})
    return dg.SensorResult(
        run_requests=[dg.RunRequest(job_name=REBUILD, run_config=run_config, tags={TABLE_TAG: str(work.name)})]
    )


def recent_failures(instance: dg.DagsterInstance, table: dict[str, str]) -> Failures:
    """The failures since the table's last run that succeeded."""
    records = instance.get_run_records(dg.RunsFilter(tags=table, statuses=_ENDED), limit=_RUNS_LOOKED_AT)
    failed = []
    for record in records:
        if record.dagster_run.status is not dg.DagsterRunStatus.FAILURE:
            break
        failed.append(record)
    if not failed:
        return Failures()
    tags = failed[0].dagster_run.tags
    return Failures(len(failed), failed[0].end_time or 0.0, tags.get(FAILED_SLICE_TAG), tags.get(REBUILD_TAG))


def _registered(instance: dg.DagsterInstance, work: TableWork) -> list[str]:
    name = slices_of(work.name).name
    return list(instance.get_dynamic_partitions(name)) if name else []


def _boundaries(instance: dg.DagsterInstance, work: TableWork) -> frozenset[int]:
    return frozenset(SliceKey.parse(key).last for key in _registered(instance, work))
