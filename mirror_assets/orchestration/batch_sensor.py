"""The sensor `mirror`: keeps a run going for each batch of tables (docs/decisions/0012).

Level-triggered, so that nothing it once missed stays missed: pending is what log and manifest say, and what runs is
what the landing zone's runner record says, never what Dagster remembers. There is no cursor and no run key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.config import Config, Mode, TableSettings
from mirror_assets.errors import RetryError, UnknownOutcome
from mirror_assets.landing.runner import Runner, read_runner
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.asset_names import BATCH_TAG
from mirror_assets.orchestration.code_mark import code_mark
from mirror_assets.orchestration.jobs import MIRROR_ALL, TABLES_OP, FollowSources, Job, MirrorTables
from mirror_assets.orchestration.rediscovery import CodeServer, Rediscovery
from mirror_assets.orchestration.resources import LandingZone, SourceTables, known_sources, project
from mirror_assets.orchestration.run_records import BatchRuns, busy_rebuild
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.orchestration.table_events import registered_boundaries
from mirror_assets.orchestration.table_states import TableStates
from mirror_assets.orchestration.tick_errors import coded_tick
from mirror_assets.pipeline.batch_runner import batch_of, is_alive
from mirror_assets.pipeline.next_action import Land, Rebuild
from mirror_assets.pipeline.table_watch import Seen, TableWatch

SENSOR = "mirror"
# Dagster ends a tick after 60 seconds.
_TICK_SECONDS = 40.0
_RESIDENT_INTERVAL_SECONDS = 20
# Of Dagster's queue: runs that people start wait for the mirror, and not the mirror for them.
PRIORITY = "dagster/priority"


@dataclass
class _Watches:
    """The watch of each batch, kept between ticks to make quiet ticks cheap; losing it costs complete looks."""

    config: Config
    sources: SourceTables | None = None
    _watches: dict[int, TableWatch] = field(default_factory=dict)
    _states: TableStates | None = None

    def states(self, instance: dg.DagsterInstance) -> TableStates:
        self._states = self._states or TableStates(instance)
        return self._states

    def of(self, batch: int, composed: Project, instance: dg.DagsterInstance) -> TableWatch:
        if batch not in self._watches:
            contexts = [composed.table(table) for table in _tables(self.config, batch)]
            self._watches[batch] = TableWatch(contexts, lambda name: registered_boundaries(instance, name))
        return self._watches[batch]


def mirror_sensor(config: Config, jobs: dict[str, Job]) -> dg.SensorDefinition:
    """Return the sensor that keeps a run going for each batch: always in mode resident, else while commits wait."""
    automation, rediscovery, kept = config.automation, Rediscovery(config), [_Watches(config)]
    is_resident = automation.mode is Mode.RESIDENT

    @dg.sensor(
        name=SENSOR,
        job=jobs[MIRROR_ALL],
        minimum_interval_seconds=_RESIDENT_INTERVAL_SECONDS if is_resident else max(1, round(automation.every)),
        default_status=default_sensor_status(),
        description=f"Mirrors {len(config.tables)} tables, in mode {automation.mode.value}.",
    )
    @coded_tick()
    def sensor(
        context: dg.SensorEvaluationContext, landing_zone: LandingZone, sources: SourceTables
    ) -> dg.SensorResult | dg.SkipReason:
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

    return sensor


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
        runner, now = drive(read_runner(number), self.composed.store), time.time()
        if runner is not None and is_alive(runner) and not self._is_old(runner, now):
            return f"run {runner.run} mirrors {self._named(number)}"
        runs = BatchRuns(self.context.instance, number)
        runs.end_dead(runner, now)
        coming = runs.coming(runner, now)
        if coming is not None:
            return f"run {coming.run_id} for {self._named(number)} is coming"
        pause = runs.pause(runner, now)
        if pause > 0:
            return f"runs for {self._named(number)} have failed; next one in {pause:.0f} s"
        if self.config.automation.mode is Mode.RESIDENT:
            return self._request(number)
        pending = self._pending(number)
        return self._request(number, pending) if pending else f"nothing is pending of {self._named(number)}"

    def _is_old(self, runner: Runner, now: float) -> bool:
        """Return whether the next run should replace this one."""
        automation = self.config.automation
        if runner.code != self.code:
            return True
        is_over = now - runner.since_ms / 1000 >= automation.resident_minutes * 60
        return automation.mode is Mode.RESIDENT and is_over

    def _request(self, number: int, pending: Sequence[str] = ()) -> dg.RunRequest:
        automation = self.config.automation
        minutes = automation.resident_minutes if automation.mode is Mode.RESIDENT else 0
        follow = FollowSources(
            every_seconds=automation.every, pending=list(pending), minutes=minutes, batch=number, code=self.code
        )
        names = [str(table.name) for table in _tables(self.config, number)] if automation.batches > 1 else []
        config = dg.RunConfig(ops={TABLES_OP: MirrorTables(tables=names, follow=follow)})
        return dg.RunRequest(run_config=config, tags={BATCH_TAG: str(number), PRIORITY: "10"})

    def _pending(self, number: int) -> list[str]:
        """Look at the tables of the batch, as many as the tick has time for; return those that need a run.

        What a look of an earlier tick has seen since counts, too.
        """
        watch = self.watches.of(number, self.composed, self.context.instance)
        deadline = time.monotonic() + _TICK_SECONDS / self.config.automation.batches
        pending: list[str] = []
        watch.begin()
        waits = True
        while waits:
            left = deadline - time.monotonic()
            waits = watch.is_looking and left > 0
            looks = watch.seen(min(left, 1.0) if waits else 0.0)
            pending += [str(seen.context.name) for seen in looks if self._needs_run(seen)]
        watch.call_off()
        for name in watch.hanging:
            self.context.log.warning(f"{name}: its source or the landing zone does not answer")
        return sorted(pending)

    def _needs_run(self, seen: Seen) -> bool:
        self.watches.states(self.context.instance).tell(seen, self.context.log)
        if isinstance(seen.action, Rebuild):
            return busy_rebuild(self.context.instance, seen.context.name) is None
        return isinstance(seen.action, Land)

    def _named(self, number: int) -> str:
        count = len(_tables(self.config, number))
        batches = self.config.automation.batches
        return f"{count} tables" if batches == 1 else f"batch {number} of {batches}, {count} tables"


def _tables(config: Config, batch: int) -> list[TableSettings]:
    return batch_of(config.all_tables(), batch, config.automation.batches)
