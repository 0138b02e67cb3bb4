"""The sensor `mirror`: keeps a run going for each batch of tables (docs/decisions/0012).

The sensor is level-triggered: each tick compares the Delta log with the manifest, and reads the batch's lease in the
landing zone, so a missed tick loses nothing. It has no cursor and no run key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Config, Mode, TableSettings
from mirror_assets.errors import ErrorCode, RetryError, SettingError, UnknownOutcome
from mirror_assets.landing.lease import Lease
from mirror_assets.orchestration.asset_names import BATCH_TAG, AssetKind
from mirror_assets.orchestration.code_mark import code_mark
from mirror_assets.orchestration.dagster_internals import RemoteRepositoryOrigin
from mirror_assets.orchestration.jobs import MIRROR_ALL, TABLES_OP, FollowSources, MirrorTables
from mirror_assets.orchestration.rediscovery import CodeServer, Rediscovery
from mirror_assets.orchestration.resources import LandingZone, SourceTables, known_sources, project
from mirror_assets.orchestration.run_records import BatchRuns, busy_rebuild
from mirror_assets.orchestration.run_tags import Location, mirror_name
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.orchestration.sensor_assets import AssetJobSensor, assets_of
from mirror_assets.orchestration.table_events import registered_boundaries
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.orchestration.tick_errors import coded_tick
from mirror_assets.pipeline.batch_runner import batch_holder, batch_of, other_mirrors, shared_tables
from mirror_assets.pipeline.liveness import has_ended, is_gone
from mirror_assets.pipeline.next_action import Land, Rebuild
from mirror_assets.pipeline.table_lease import holder
from mirror_assets.pipeline.table_watch import PollResult, TableWatch

SENSOR = "mirror"
# Dagster ends a tick after 60 seconds.
_TICK_SECONDS = 40.0
_RESIDENT_INTERVAL_SECONDS = 20
# Age at which a resident run is replaced by the next one, so that each log file has an end.
RESIDENT_MINUTES = 240
# Of Dagster's queue: runs that people start wait for the mirror, and not the mirror for them.
PRIORITY = "dagster/priority"


@dataclass
class _Watches:
    """The watch of each batch, a cache between ticks: without it, every table is polled completely."""

    config: Config
    sources: SourceTables | None = None
    _watches: dict[int, TableWatch] = field(default_factory=dict)
    _states: TableStates | None = None

    def states(self, context: dg.SensorEvaluationContext) -> TableStates:
        origin, name = context.code_location_origin, context.repository_name
        repository = RemoteRepositoryOrigin(origin, name) if origin and name else None
        self._states = self._states or TableStates(context.instance, repository)
        return self._states

    def of(self, batch: int, composed: Project, instance: dg.DagsterInstance) -> TableWatch:
        if batch not in self._watches:
            contexts = [composed.table(table) for table in _tables(self.config, batch)]
            self._watches[batch] = TableWatch(contexts, lambda name: registered_boundaries(instance, name))
        return self._watches[batch]


def mirror_sensor(config: Config) -> dg.SensorDefinition:
    """Return the sensor that keeps a run going for each batch: always in mode resident, else while commits wait."""
    automation, rediscovery, kept = config.automation, Rediscovery(config), [_Watches(config)]
    is_resident = automation.mode is Mode.RESIDENT

    @coded_tick()
    def sensor(
        context: dg.SensorEvaluationContext, landing_zone: LandingZone, sources: SourceTables
    ) -> dg.SensorResult | dg.SkipReason:
        _require_room(context.instance, automation.batches)
        rediscovery.tick(CodeServer.of(context), context.log)
        if kept[0].config is not rediscovery.config:
            kept[0] = _Watches(rediscovery.config, known_sources(rediscovery.config))
        watches, known = kept[0], rediscovery.config
        composed = project(known, landing_zone, watches.sources or sources)
        code = code_mark(context.code_location_origin, known, rediscovery.code)
        tick = _Tick(context, known, composed, watches, code)
        try:
            answers = [tick.batch(number) for number in range(min(automation.batches, len(known.tables)))]
        except (RetryError, UnknownOutcome) as error:
            return dg.SkipReason(str(error))
        requests = [answer for answer in answers if isinstance(answer, dg.RunRequest)]
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason("; ".join(str(answer) for answer in answers) or "no table has been found yet")

    return AssetJobSensor(
        sensor,
        name=SENSOR,
        job_name=MIRROR_ALL,
        assets=assets_of(config, (AssetKind.SOURCE, AssetKind.CHANGES, AssetKind.LANDING)),
        minimum_interval_seconds=_RESIDENT_INTERVAL_SECONDS if is_resident else max(1, round(automation.every)),
        default_status=default_sensor_status(),
        description=f"Mirrors {len(config.tables)} tables, in mode {automation.mode.value}.",
    )


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
    """One evaluation of the sensor."""

    context: dg.SensorEvaluationContext
    config: Config
    composed: Project
    watches: _Watches
    code: str

    def batch(self, number: int) -> dg.RunRequest | str:
        """Return the run to request for the batch, or why there is none."""
        instance, store, now = self.context.instance, self.composed.store, time.time()
        mirror = mirror_name(instance, self.context.code_location_origin)
        names = {str(table.name) for table in _tables(self.config, number)}
        lease = batch_holder(store, mirror, number)
        is_alive = lease is not None and not is_gone(lease) and not self._has_finished(lease)
        if lease is not None and is_alive and not self._is_old(lease, now):
            shared = (shared_tables(names, other) for other in other_mirrors(store, mirror, number, names))
            return "; ".join((f"run {lease.run} mirrors {self._named(number)}", *shared))
        runs = BatchRuns(instance, Location.of(self.context), number)
        runs.end_dead(lease, now, partial(self._works, number))
        coming = runs.coming(lease, now)
        if coming is not None:
            return f"run {coming.run_id} for {self._named(number)} is coming"
        pause = runs.pause(lease, now)
        if pause > 0:
            return f"runs for {self._named(number)} have failed; next one in {pause:.0f} s"
        pending = [] if self.config.automation.mode is Mode.RESIDENT else self._pending(number)
        if self.config.automation.mode is Mode.BATCH and not pending:
            return f"nothing is pending of {self._named(number)}"
        others = [] if is_alive else other_mirrors(store, mirror, number, names)
        same = next((other for other in others if set(other.tables) == names), None)
        if same is not None:
            return f"another Dagster instance mirrors {self._named(number)}: {same}. Switch one of the two sensors off"
        return self._request(number, pending)

    def _has_finished(self, lease: Lease) -> bool:
        """Return whether the lease's run has ended by Dagster's records, for processes of other machines."""
        if has_ended(lease.process) is not None:
            return False
        run = self.context.instance.get_run_by_id(lease.run)
        return run is not None and run.is_finished

    def _works(self, number: int, run: str) -> bool:
        """Return whether the run holds the lease of a table."""
        held = (holder(self.composed.store, table.name) for table in _tables(self.config, number))
        return any(lease is not None and lease.run == run for lease in held)

    def _is_old(self, lease: Lease, now: float) -> bool:
        """Return whether the next run should replace this one."""
        automation = self.config.automation
        if lease.code != self.code:
            return True
        is_over = now - lease.since_ms / 1000 >= RESIDENT_MINUTES * 60
        return automation.mode is Mode.RESIDENT and is_over

    def _request(self, number: int, pending: Sequence[str] = ()) -> dg.RunRequest:
        automation = self.config.automation
        minutes = RESIDENT_MINUTES if automation.mode is Mode.RESIDENT else 0
        follow = FollowSources(
            every_seconds=automation.every, pending=list(pending), minutes=minutes, batch=number, code=self.code
        )
        names = [str(table.name) for table in _tables(self.config, number)] if automation.batches > 1 else []
        config = dg.RunConfig(ops={TABLES_OP: MirrorTables(tables=names, follow=follow)})
        return dg.RunRequest(run_config=config, tags={BATCH_TAG: str(number), PRIORITY: "10"})

    def _pending(self, number: int) -> list[str]:
        """Poll the tables of the batch, as many as the tick has time for; return those that need a run.

        Polls that an earlier tick started count when they end.
        """
        watch = self.watches.of(number, self.composed, self.context.instance)
        deadline = time.monotonic() + _TICK_SECONDS / self.config.automation.batches
        pending: list[str] = []
        watch.begin()
        waits = True
        while waits:
            left = deadline - time.monotonic()
            waits = watch.is_polling and left > 0
            polls = watch.polls(min(left, 1.0) if waits else 0.0)
            pending += [str(poll.context.name) for poll in polls if self._needs_run(poll)]
        watch.cancel()
        for name in watch.hanging:
            self.context.log.warning(f"{name}: its source or the landing zone does not respond")
        return sorted(pending)

    def _needs_run(self, poll: PollResult) -> bool:
        self.watches.states(self.context).record(poll, self.context.log)
        if isinstance(poll.action, Rebuild):
            return busy_rebuild(self.context.instance, Location.of(self.context), poll.context.name) is None
        return isinstance(poll.action, Land)

    def _named(self, number: int) -> str:
        count = len(_tables(self.config, number))
        batches = self.config.automation.batches
        return f"{count} tables" if batches == 1 else f"batch {number} of {batches}, {count} tables"


def _tables(config: Config, batch: int) -> list[TableSettings]:
    return batch_of(config.all_tables(), batch, config.automation.batches)
