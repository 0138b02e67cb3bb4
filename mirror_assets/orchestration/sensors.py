"""The sensor of a table: level-triggered, so that nothing it once missed stays missed.

Pending is what log and manifest say, never what Dagster remembers. There is no cursor and no run key: both have
swallowed runs elsewhere (docs/decisions/0005).
"""

import time

import dagster as dg

from mirror_assets.composition import stand_in
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import RetryError, UnknownOutcome
from mirror_assets.landing.rebuild import Progress
from mirror_assets.orchestration.asset_names import (
    PROGRESS_TAG,
    RANGE_END,
    RANGE_START,
    TABLE_TAG,
    flat_name,
    slices_of,
)
from mirror_assets.orchestration.assets import mirror_observation, source_observation
from mirror_assets.orchestration.jobs import REBUILD, REBUILD_OP, REPLICATE, Job, slices_job_name
from mirror_assets.orchestration.partitions import Registered, Surplus, registered
from mirror_assets.orchestration.resources import LandingZone, SourceTables, mirror_of, project
from mirror_assets.orchestration.run_records import BUSY, busy_run, crashes, record_held
from mirror_assets.orchestration.schedules import is_on
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import TableHeld
from mirror_assets.pipeline.next_action import Land, QuietMark, Rebuild, Rest, Scheduler, is_quiet, next_action
from mirror_assets.pipeline.plan import slice_key

_INTERVAL_SECONDS = 15
_REPLICATE_SECONDS = 20
_OBSERVE_SECONDS = 300
_FULL_EVALUATION_SECONDS = 3600


class Memory:
    """What a table's sensor keeps between ticks to make quiet ticks cheap; losing it costs one full evaluation."""

    def __init__(self, table: TableSettings) -> None:
        """Begin without a mark."""
        self.table_context: TableContext | None = None
        self.surplus = Surplus(table.name, table.partitions.keep)
        self._mark: QuietMark | None = None
        self._until = 0.0

    def remember(self, mark: QuietMark | None) -> None:
        """Keep the mark of a full evaluation for an hour; None forgets it."""
        self._mark, self._until = mark, time.monotonic() + _FULL_EVALUATION_SECONDS

    def mark(self) -> QuietMark | None:
        """Return the mark, if it is not older than an hour."""
        return self._mark if time.monotonic() < self._until else None


def default_status() -> dg.DefaultSensorStatus:
    """Return whether sensors run by default: only if MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


def slices_sensor(settings: Config, table: TableSettings, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """Return the sensor that registers a table's pending slices and requests one run of them."""
    memory = Memory(table)

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
        # Kept, for opening a source's store may cost a token.
        memory.table_context = memory.table_context or project(settings, landing_zone, sources).table(table)
        return _tick(context, memory.table_context, memory)

    return sensor


def replicator_sensor(settings: Config, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """Return the sensor that runs the local stand-in, or observes the tables in Fabric."""
    return _stand_in_sensor(settings, jobs) if settings.mirror.fabric is None else _fabric_sensor(settings)


def _stand_in_sensor(settings: Config, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """Return the sensor that requests a run of the stand-in when a landing file waits, one run at a time."""

    @dg.sensor(
        name="replicator",
        job=jobs[REPLICATE],
        minimum_interval_seconds=_REPLICATE_SECONDS,
        default_status=default_status(),
        description="Runs the local stand-in for Fabric's replicator.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing_zone: LandingZone) -> dg.RunRequest | dg.SkipReason:
        if context.instance.get_runs(dg.RunsFilter(job_name=REPLICATE, statuses=BUSY), limit=1):
            return dg.SkipReason("it is polling")
        waits = stand_in(settings, landing_zone.store()).has_work()
        return dg.RunRequest() if waits else dg.SkipReason("no landing file waits")

    return sensor


def _fabric_sensor(settings: Config) -> dg.SensorDefinition:
    """Return the sensor that observes Fabric without a run; each observation lists every table folder."""

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


def _tick(
    context: dg.SensorEvaluationContext, table_context: TableContext, memory: Memory
) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the table. An error that a person must fix fails the tick; one that time fixes skips it."""
    try:
        mark = memory.mark()
        if mark is not None and is_quiet(mark, table_context.name, table_context.store, table_context.log):
            return dg.SkipReason(f"{table_context.name}: version {mark.tip.version} is covered")
        memory.remember(None)
        return _evaluate(context, table_context, memory)
    except (RetryError, UnknownOutcome) as error:
        return dg.SkipReason(str(error))


def _evaluate(
    context: dg.SensorEvaluationContext, table_context: TableContext, memory: Memory
) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the table in full. Raises TableHeld, which its check not_held shows, and what `next_action` raises."""
    instance = context.instance
    busy = busy_run(instance, table_context.name)
    if busy is not None:
        return dg.SkipReason(f"run {busy.run_id} of {table_context.name} is under way")
    seen = Registered()

    def boundaries(epoch: int, covered: int) -> frozenset[int]:
        nonlocal seen
        seen = registered(instance, table_context.name, epoch, covered)
        return seen.boundaries(epoch, covered)

    scheduler = Scheduler(lambda progress: crashes(instance, table_context.name, progress), boundaries)
    try:
        action = next_action(table_context, scheduler, time.time())
    except TableHeld as error:
        record_held(instance, table_context.name, str(error))
        raise
    record_held(instance, table_context.name, None)
    if seen.strangers:
        context.log.warning(f"{table_context.name}: no slices, and left alone: {', '.join(seen.strangers)}")
    if isinstance(action, Rest):
        memory.remember(action.mark)
        return dg.SkipReason(action.why)
    if isinstance(action, Rebuild):
        return dg.SensorResult(run_requests=[_rebuild_request(table_context, action)])
    return _land(instance, table_context, action, seen, memory.surplus)


def _land(
    instance: dg.DagsterInstance, table_context: TableContext, action: Land, seen: Registered, surplus: Surplus
) -> dg.SensorResult:
    """Register and observe new slices, request one run of those that may be tried now, and delete the oldest keys."""
    partitions, plan = slices_of(table_context.name), action.plan
    by_key = {str(slice_key(planned)): planned for planned in action.slices}
    keys = seen.range_of(list(by_key))
    new = [key for key in keys if key not in seen.keys]
    covered = plan.manifest.covered if plan.manifest else -1
    old = surplus.keys(instance, len(new), action.slices[0].epoch, covered)
    tags = {RANGE_START: keys[0], RANGE_END: keys[-1], **_tags(table_context, action.progress)}
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if new:
        requests.append(partitions.build_add_request(new))
    if old:
        requests.append(partitions.build_delete_request(old))
    return dg.SensorResult(
        run_requests=[dg.RunRequest(job_name=slices_job_name(table_context.name), tags=tags)],
        dynamic_partitions_requests=requests,
        asset_events=[source_observation(table_context.name, plan.state, by_key[key]) for key in new],
    )


def _rebuild_request(table_context: TableContext, action: Rebuild) -> dg.RunRequest:
    run_config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(table_context.name)}}})
    return dg.RunRequest(job_name=REBUILD, run_config=run_config, tags=_tags(table_context, action.progress))


def _tags(table_context: TableContext, progress: Progress) -> dict[str, str]:
    """Return the tags that tell a crashed run's table and progress: a killed run can record nothing itself."""
    return {TABLE_TAG: str(table_context.name), PROGRESS_TAG: str(progress)}
