"""The sensor `mirror`: keeps a run going for each batch of tables (docs/decisions/0012).

The sensor is level-triggered: each tick compares the Delta log with the manifest, and reads the batch's lease in the
landing zone, so a missed tick loses nothing. It has no cursor and no run key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Mode, TableSettings
from mirror_assets.errors import ErrorCode, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.lease import Lease
from mirror_assets.orchestration.asset_names import BATCH_TAG, MIRROR_ALL, AssetKind
from mirror_assets.orchestration.code_mark import code_mark
from mirror_assets.orchestration.dagster_internals import RemoteRepositoryOrigin
from mirror_assets.orchestration.jobs import TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_tables import FollowSources
from mirror_assets.orchestration.partitions import registered_boundaries
from mirror_assets.orchestration.rediscovery import Rediscovery
from mirror_assets.orchestration.resources import project, resource_keys
from mirror_assets.orchestration.run_records import BatchRuns, busy_rebuild
from mirror_assets.orchestration.run_tags import Location, mirror_name
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.orchestration.sensor_assets import AssetJobSensor
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.orchestration.tick_errors import coded_tick
from mirror_assets.pipeline.batch_runner import batch_holder, batch_of, other_mirrors, shared_tables
from mirror_assets.pipeline.liveness import has_ended, is_gone
from mirror_assets.pipeline.next_action import Land, Rebuild
from mirror_assets.pipeline.table_lease import holder
from mirror_assets.pipeline.table_watch import TableWatch

SENSOR = "mirror"
# Dagster ends a tick after 60 seconds.
_TICK_SECONDS = 40.0
_RESIDENT_INTERVAL_SECONDS = 20
# Age at which a resident run is replaced by the next one, so that each log file has an end.
RESIDENT_MINUTES = 240
# Of Dagster's queue: runs that people start wait for the mirror, and not the mirror for them.
PRIORITY = "dagster/priority"


def mirror_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that keeps a run going for each batch: always in mode resident, else while commits wait."""
    automation, rediscovery = assets.config.automation, Rediscovery(assets)
    watches: dict[int, TableWatch] = {}
    states: list[TableStates] = []

    @coded_tick()
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        _require_room(context.instance, automation.batches)
        before, origin = rediscovery.assets, context.code_location_origin
        rediscovery.tick(origin, context.instance.code_server_reload_timeout, context.log)
        known = rediscovery.assets
        if known is not before:
            watches.clear()
        if not states:
            name = context.repository_name
            repository = RemoteRepositoryOrigin(origin, name) if origin and name else None
            states.append(TableStates(context.instance, known, repository))
        states[0].assets = known
        code = code_mark(origin, known.config, rediscovery.code)
        composed = project(known, context.resources, with_spark=False)
        tick = _Tick(context, known, composed, watches, states[0], code)
        try:
            answers = [tick.batch(number) for number in range(min(automation.batches, len(known.config.tables)))]
        except (RetryError, UnknownOutcome) as error:
            return dg.SkipReason(str(error))
        requests = [answer for answer in answers if isinstance(answer, dg.RunRequest)]
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason("; ".join(str(answer) for answer in answers) or "no table has been found yet")

    is_resident = automation.mode is Mode.RESIDENT
    made = AssetJobSensor(
        name=assets.full_name(SENSOR),
        evaluation_fn=sensor,
        job_name=assets.full_name(MIRROR_ALL),
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_RESIDENT_INTERVAL_SECONDS if is_resident else max(1, round(automation.every)),
        default_status=default_sensor_status(),
        description=f"Mirrors {len(assets.config.tables)} tables, in mode {automation.mode.value}.",
    )
    made.assets = assets.keys(AssetKind.SOURCE, AssetKind.CHANGES, AssetKind.LANDING)
    return made


def _require_room(instance: dg.DagsterInstance, batches: int) -> None:
    """Raise SettingError if Dagster starts too few runs at a time to replace a resident run."""
    queue = instance.get_concurrency_config().run_queue_config
    at_once = queue.max_concurrent_runs if queue else -1
    if 0 <= at_once <= batches:
        raise SettingError(
            f"automation.batches is {batches}, and Dagster starts at most {at_once} runs at a time: none is left for a "
            "run that takes over.",
            f"set concurrency.runs.max_concurrent_runs in dagster.yaml to {batches + 2} or more.",
            code=ErrorCode.CONFIG_INVALID,
        )


@dataclass(frozen=True)
class _Tick:
    """One evaluation of the sensor.

    `watches` are a cache between ticks, by batch: without it, every table is polled completely.
    """

    context: dg.SensorEvaluationContext
    assets: MirrorAssets
    composed: Project
    watches: dict[int, TableWatch]
    states: TableStates
    code: str

    def batch(self, number: int) -> dg.RunRequest | str:
        """Return the run to request for the batch, or why there is none."""
        instance, store, now = self.context.instance, self.composed.store, time.time()
        automation = self.composed.config.automation
        mirror = mirror_name(instance, self.context.code_location_origin, self.assets.name)
        tables = batch_of(self.composed.config.all_tables(), number, automation.batches)
        names = {str(table.name) for table in tables}
        named = f"{len(tables)} tables"
        named = named if automation.batches == 1 else f"batch {number} of {automation.batches}, {named}"
        lease = batch_holder(store, mirror, number)
        is_alive = lease is not None and not is_gone(lease) and not self._has_finished(lease)
        if lease is not None and is_alive and not self._is_old(lease, now):
            shared = (shared_tables(names, other) for other in other_mirrors(store, mirror, number, names))
            return "; ".join((f"run {lease.run} mirrors {named}", *shared))
        runs = BatchRuns(instance, Location.of(self.context), self.assets.full_name(MIRROR_ALL), number)
        runs.end_dead(lease, now, lambda run: any(self._works(table, run) for table in tables))
        coming = runs.coming(lease, now)
        if coming is not None:
            return f"run {coming.run_id} for {named} is coming"
        pause = runs.pause(lease, now)
        if pause > 0:
            return f"runs for {named} have failed; next one in {pause:.0f} s"
        pending = [] if automation.mode is Mode.RESIDENT else self._pending(number, tables)
        if automation.mode is Mode.BATCH and not pending:
            return f"nothing is pending of {named}"
        others = [] if is_alive else other_mirrors(store, mirror, number, names)
        same = next((other for other in others if set(other.tables) == names), None)
        if same is not None:
            return f"another Dagster instance mirrors {named}: {same}. Switch one of the two sensors off"
        minutes = RESIDENT_MINUTES if automation.mode is Mode.RESIDENT else 0
        follow = FollowSources(
            every_seconds=automation.every, pending=pending, minutes=minutes, batch=number, code=self.code
        )
        chosen = [str(table.name) for table in tables] if automation.batches > 1 else []
        run_config = dg.RunConfig(ops={self.assets.full_name(TABLES_OP): MirrorTables(tables=chosen, follow=follow)})
        return dg.RunRequest(run_config=run_config, tags={BATCH_TAG: str(number), PRIORITY: "10"})

    def _has_finished(self, lease: Lease) -> bool:
        """Return whether the lease's run has ended by Dagster's records, for processes of other machines."""
        if has_ended(lease.process) is not None:
            return False
        run = self.context.instance.get_run_by_id(lease.run)
        return run is not None and run.is_finished

    def _works(self, table: TableSettings, run: str) -> bool:
        """Return whether the run holds the table's lease."""
        lease = holder(self.composed.store, table.name)
        return lease is not None and lease.run == run

    def _is_old(self, lease: Lease, now: float) -> bool:
        """Return whether the next run should replace this one."""
        is_over = now - lease.since_ms / 1000 >= RESIDENT_MINUTES * 60
        is_resident = self.composed.config.automation.mode is Mode.RESIDENT
        return lease.code != self.code or (is_resident and is_over)

    def _pending(self, number: int, tables: Sequence[TableSettings]) -> list[str]:
        """Poll the tables of the batch, as many as the tick has time for; return those that need a run.

        Polls that an earlier tick started count when they end.
        """
        if number not in self.watches:
            contexts = [self.composed.table(table) for table in tables]
            self.watches[number] = TableWatch(
                contexts, partial(registered_boundaries, self.context.instance, self.assets)
            )
        watch = self.watches[number]
        deadline = time.monotonic() + _TICK_SECONDS / self.composed.config.automation.batches
        pending: list[str] = []
        watch.begin()
        waits = True
        while waits:
            left = deadline - time.monotonic()
            waits = watch.is_polling and left > 0
            for poll in watch.polls(min(left, 1.0) if waits else 0.0):
                self.states.record(poll, self.context.log)
                name, needs_run = poll.context.name, isinstance(poll.action, Land)
                if isinstance(poll.action, Rebuild):
                    needs_run = (
                        busy_rebuild(self.context.instance, Location.of(self.context), self.assets, name) is None
                    )
                pending += [str(name)] if needs_run else []
        watch.cancel()
        for hanging in watch.hanging:
            self.context.log.warning(f"{hanging}: its source or the landing zone does not respond")
        return sorted(pending)
