"""The sensor of a table: level-triggered, so that nothing it once missed stays missed.

Pending is what log and manifest say, never what Dagster remembers. There is no cursor and no run key: both have
swallowed runs elsewhere (docs/decisions/0005).
"""

import time

import dagster as dg

from mirror_assets.assets.mirror import mirror_observation
from mirror_assets.assets.names import POSITION_TAG, RANGE_END, RANGE_START, TABLE_TAG, flat_name, slices_of
from mirror_assets.assets.source import source_observation
from mirror_assets.automation.held import show_held
from mirror_assets.automation.jobs import REBUILD, REBUILD_OP, REPLICATE, Job, slices_job_name
from mirror_assets.automation.partitions import Registered, Surplus, registered
from mirror_assets.automation.runs import BUSY, busy_run, crashes
from mirror_assets.automation.switch import is_on
from mirror_assets.config import Config, TableSettings
from mirror_assets.errors import RetryError, UnknownOutcome
from mirror_assets.landing.rebuild import Position
from mirror_assets.mirroring.due import Land, Rebuild, Rest, Scheduler, next_action
from mirror_assets.mirroring.errors import TableHeld
from mirror_assets.mirroring.mirrors import stand_in
from mirror_assets.mirroring.quiet import QuietMark, is_quiet
from mirror_assets.mirroring.stage import slice_key
from mirror_assets.mirroring.work import TableWork
from mirror_assets.resources.catalog import mirror_of, planning_work
from mirror_assets.resources.landing_zone import LandingZone
from mirror_assets.resources.sources import SourceTables

_INTERVAL_SECONDS = 15
_REPLICATE_SECONDS = 20
_OBSERVE_SECONDS = 300
_WHOLE_LOOK_SECONDS = 3600


class Memory:
    """What a table's sensor keeps between ticks, to ask for less; without it, it only looks at everything once more."""

    def __init__(self, table: TableSettings) -> None:
        """Nothing has been looked at yet."""
        self.work: TableWork | None = None
        self.surplus = Surplus(table.name, table.partitions.keep)
        self._mark: QuietMark | None = None
        self._until = 0.0

    def remember(self, mark: QuietMark | None) -> None:
        """Keep the mark of a complete look for an hour; None: there is something to do."""
        self._mark, self._until = mark, time.monotonic() + _WHOLE_LOOK_SECONDS

    def mark(self) -> QuietMark | None:
        """The mark, if it is not too old."""
        return self._mark if time.monotonic() < self._until else None


def default_status() -> dg.DefaultSensorStatus:
    """Off, unless MIRROR_SENSORS is `on`."""
    return dg.DefaultSensorStatus.RUNNING if is_on() else dg.DefaultSensorStatus.STOPPED


def slices_sensor(settings: Config, table: TableSettings, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """The sensor that registers a table's pending slices and asks for one run of them."""
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
        memory.work = memory.work or planning_work(settings, table, landing_zone, sources)
        return _tick(context, memory.work, memory)

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
        if context.instance.get_runs(dg.RunsFilter(job_name=REPLICATE, statuses=BUSY), limit=1):
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


def _tick(context: dg.SensorEvaluationContext, work: TableWork, memory: Memory) -> dg.SensorResult | dg.SkipReason:
    """What to ask for now. What a person has to mend fails the tick, so that it is seen; what time mends is a skip."""
    try:
        mark = memory.mark()
        if mark is not None and is_quiet(mark, work.name, work.store, work.log):
            return dg.SkipReason(f"{work.name}: version {mark.tip.version} is covered")
        memory.remember(None)
        return _look(context, work, memory)
    except (RetryError, UnknownOutcome) as error:
        return dg.SkipReason(str(error))


def _look(context: dg.SensorEvaluationContext, work: TableWork, memory: Memory) -> dg.SensorResult | dg.SkipReason:
    """A complete look at the table. Raises TableHeld, when its check says so, too, and what `next_action` raises."""
    instance = context.instance
    busy = busy_run(instance, work.name)
    if busy is not None:
        return dg.SkipReason(f"run {busy.run_id} of {work.name} is under way")
    seen = Registered()

    def boundaries(life: int, covered: int) -> frozenset[int]:
        nonlocal seen
        seen = registered(instance, work.name, life, covered)
        return seen.boundaries(life, covered)

    scheduler = Scheduler(lambda position: crashes(instance, work.name, position), boundaries)
    try:
        action = next_action(work, scheduler, time.time())
    except TableHeld as error:
        show_held(instance, work.name, str(error))
        raise
    show_held(instance, work.name, None)
    if seen.strangers:
        context.log.warning(f"{work.name}: no slices, and left alone: {', '.join(seen.strangers)}")
    if isinstance(action, Rest):
        memory.remember(action.mark)
        return dg.SkipReason(action.why)
    if isinstance(action, Rebuild):
        return dg.SensorResult(run_requests=[_rebuild_request(work, action)])
    return _land(instance, work, action, seen, memory.surplus)


def _land(
    instance: dg.DagsterInstance, work: TableWork, action: Land, seen: Registered, surplus: Surplus
) -> dg.SensorResult:
    """New slices registered and observed, one run for all that may be tried now, and the oldest keys deleted."""
    partitions, plan = slices_of(work.name), action.plan
    by_key = {str(slice_key(planned)): planned for planned in action.slices}
    keys = seen.range_of(list(by_key))
    new = [key for key in keys if key not in seen.keys]
    covered = plan.manifest.covered if plan.manifest else -1
    old = surplus.keys(instance, len(new), action.slices[0].life, covered)
    tags = {RANGE_START: keys[0], RANGE_END: keys[-1], **_tags(work, action.position)}
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if new:
        requests.append(partitions.build_add_request(new))
    if old:
        requests.append(partitions.build_delete_request(old))
    return dg.SensorResult(
        run_requests=[dg.RunRequest(job_name=slices_job_name(work.name), tags=tags)],
        dynamic_partitions_requests=requests,
        asset_events=[source_observation(work.name, plan.state, by_key[key]) for key in new],
    )


def _rebuild_request(work: TableWork, action: Rebuild) -> dg.RunRequest:
    run_config = dg.RunConfig(ops={REBUILD_OP: {"config": {"table": str(work.name)}}})
    return dg.RunRequest(job_name=REBUILD, run_config=run_config, tags=_tags(work, action.position))


def _tags(work: TableWork, position: Position) -> dict[str, str]:
    """Which table a run is asked for, and where it was then: a run that is killed can tell nobody that it failed."""
    return {TABLE_TAG: str(work.name), POSITION_TAG: str(position)}
