"""The sensors: `mirror` keeps a run going for each batch of tables (docs/decisions/0012), `replicator` the stand-in.

They are level-triggered: each tick of `mirror` compares the Delta log with the manifest, and reads the batch's lease in
the landing zone, so a missed tick loses nothing. It has no cursor and no run key.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import dagster as dg

from mirror_assets.config.discovered import When, with_found_tables
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.config.sections import Mode
from mirror_assets.config.table_settings import TableSettings
from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName, batch_lease
from mirror_assets.landing.run_records import Lease
from mirror_assets.orchestration.dagster_internals import (
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    AssetJobSensor,
    CodeLocationOrigin,
    GrpcServerCodeLocationOrigin,
)
from mirror_assets.orchestration.errors import TOO_FEW_RUNS
from mirror_assets.orchestration.jobs import REBUILD, REPLICATE, TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.partitions import registered_boundaries
from mirror_assets.orchestration.resident import BatchRuns, FollowSources, code_mark
from mirror_assets.orchestration.resources import project, resource_keys, zone_of
from mirror_assets.orchestration.runs import BATCH_TAG, BUSY, Location, mirror_name
from mirror_assets.orchestration.schedules import default_sensor_status
from mirror_assets.pipeline.leases import batch_holder, end_lease, other_mirrors, request_end, shared_tables
from mirror_assets.pipeline.liveness import RunState, has_ended, lease_state
from mirror_assets.pipeline.next_action import Land, Rebuild
from mirror_assets.pipeline.project import Project, stand_in
from mirror_assets.pipeline.table_watch import TableWatch

MIRROR_SENSOR = "mirror"
REPLICATOR_SENSOR = "replicator"
# Dagster ends a tick after 60 seconds.
_TICK_SECONDS = 40.0
_RESIDENT_INTERVAL_SECONDS = 20
_REPLICATE_SECONDS = 20
# The interval between scans by `discover`.
_SCAN_SECONDS = 60.0
# A tick waits this long for a scan; a later tick reads the result of a slower one.
_TICK_WAITS_SECONDS = 5.0
_NAMED = 5
# In Dagster's queue, runs that people start wait for the mirror, and not the mirror for them.
_PRIORITY = "10"
# A resident run ends after this time, so that each log file has an end.
RESIDENT_MINUTES = 240
_LOG = logging.getLogger(__name__)


class TickFailed(Exception):
    """A tick failed; the next one retries."""

    def __init__(self, error: MirrorError) -> None:
        super().__init__(f"{error} ({error.code.value})")


@contextmanager
def coded_tick() -> Iterator[None]:
    """Let the tick fail with the error's message and code. Raises TickFailed."""
    try:
        yield
    except MirrorError as error:
        raise TickFailed(error) from error


def mirror_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that keeps a run going for each batch: always in mode resident, else while commits wait."""
    automation, rediscovery = assets.config.automation, Rediscovery(assets)
    watches: dict[int, TableWatch] = {}

    @coded_tick()
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        _require_room(context.instance, automation.batches)
        before, origin = rediscovery.assets, context.code_location_origin
        rediscovery.tick(origin, context.instance.code_server_reload_timeout, context.log)
        known = rediscovery.assets
        if known is not before:
            watches.clear()
        composed = project(known, context.resources, with_spark=False)
        tick = _Tick(context, known, composed, watches, code_mark(known))
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
        name=assets.full_name(MIRROR_SENSOR),
        evaluation_fn=sensor,
        job_name=assets.full_name(MIRROR_ALL),
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_RESIDENT_INTERVAL_SECONDS if is_resident else max(1, round(automation.every)),
        default_status=default_sensor_status(),
        description=f"Mirrors {len(assets.config.tables)} tables, in mode {automation.mode.value}.",
    )
    made.groups = assets.groups
    return made


def _require_room(instance: dg.DagsterInstance, batches: int) -> None:
    """Raise SettingError if the runs of the batches would take all places in Dagster's queue."""
    queue = instance.get_concurrency_config().run_queue_config
    at_once = queue.max_concurrent_runs if queue else -1
    if 0 <= at_once <= batches:
        raise TOO_FEW_RUNS(batches=batches, at_once=at_once, wanted=batches + 2)


@dataclass(frozen=True)
class _Tick:
    """One evaluation of the sensor.

    `watches` are a cache between ticks, by batch: without it, every table is polled completely.
    """

    context: dg.SensorEvaluationContext
    assets: MirrorAssets
    composed: Project
    watches: dict[int, TableWatch]
    code: str

    def batch(self, number: int) -> dg.RunRequest | str:
        """Return the run to request for the batch, or why there is none."""
        instance, store, now = self.context.instance, self.composed.store, time.time()
        automation = self.composed.config.automation
        mirror = mirror_name(instance, self.context.code_location_origin, self.assets.name)
        tables = self.composed.config.all_tables()[number :: automation.batches]
        names = {str(table.name) for table in tables}
        named = f"{len(tables)} tables"
        named = named if automation.batches == 1 else f"batch {number} of {automation.batches}, {named}"
        lease, path = batch_holder(store, mirror, number), batch_lease(mirror, number)
        if lease is not None and self._is_working(lease, path):
            is_current = lease.code == self.code
            if not is_current and lease.next_code != self.code:
                request_end(store, lease, path, self.code)
            ends = () if is_current else ("it ends, because settings, code or tables have changed",)
            shared = (shared_tables(names, other) for other in other_mirrors(store, mirror, number, names))
            return "; ".join((f"run {lease.run} mirrors {named}", *ends, *shared))
        runs = BatchRuns(instance, Location.of(self.context), self.assets.full_name(MIRROR_ALL), number)
        for ended in runs.end_dead(store, now):
            self.context.log.warning(ended)
        if runs.active:
            return f"{runs.active}, for {named}"
        pause = runs.pause(lease, now)
        if pause > 0:
            return f"runs for {named} have failed; next one in {pause:.0f} s"
        pending = [] if automation.mode is Mode.RESIDENT else self._pending(number, tables)
        if automation.mode is Mode.BATCH and not pending:
            return f"nothing is pending of {named}"
        others = other_mirrors(store, mirror, number, names)
        same = next((other for other in others if set(other.tables) == names), None)
        if same is not None:
            return f"another Dagster instance mirrors {named}: {same}. Switch one of the two sensors off"
        minutes = RESIDENT_MINUTES if automation.mode is Mode.RESIDENT else 0
        follow = FollowSources(
            every_seconds=automation.every, pending=pending, minutes=minutes, batch=number, code=self.code
        )
        chosen = [str(table.name) for table in tables] if automation.batches > 1 else []
        run_config = dg.RunConfig(ops={self.assets.full_name(TABLES_OP): MirrorTables(tables=chosen, follow=follow)})
        return dg.RunRequest(run_config=run_config, tags={BATCH_TAG: str(number), PRIORITY_TAG: _PRIORITY})

    def _is_working(self, lease: Lease, path: str) -> bool:
        """Return whether the lease's run mirrors the batch.

        A run on another machine has also ended when Dagster knows that; its heartbeat would show it later.
        """
        if lease_state(self.composed.store, path, lease, writes=True) is not RunState.WORKS:
            return False
        if has_ended(lease.process) is not None:
            return True
        run = self.context.instance.get_run_by_id(lease.run)
        if run is None or not run.is_finished:
            return True
        end_lease(self.composed.store, lease, path)
        return False

    def _pending(self, number: int, tables: Sequence[TableSettings]) -> list[str]:
        """Poll the tables of the batch, as many as the tick has time for; return those that need a run.

        Polls that an earlier tick started count when they end.
        """
        if number not in self.watches:
            contexts = [self.composed.table(table) for table in tables]
            self.watches[number] = TableWatch(
                contexts,
                {
                    context.name: registered_boundaries(self.context.instance, self.assets, context.name)
                    for context in contexts
                },
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
                name, needs_run = poll.context.name, isinstance(poll.action, Land)
                if isinstance(poll.action, Rebuild):
                    needs_run = not self._has_rebuild(name)
                pending += [str(name)] if needs_run else []
        watch.cancel()
        for hanging in watch.hanging:
            self.context.log.warning(f"{hanging}: its source or the landing zone does not respond")
        return sorted(pending)

    def _has_rebuild(self, table: TableName) -> bool:
        """Return whether a queued or running run of the code location rebuilds the table."""
        tags = {**Location.of(self.context).tags, PARTITION_NAME_TAG: str(table)}
        runs = dg.RunsFilter(job_name=self.assets.full_name(REBUILD), statuses=BUSY, tags=tags)
        return bool(self.context.instance.get_runs(runs, limit=1))


@dataclass
class Rediscovery:
    """The tables that this process mirrors, which are those that it was loaded with, or that it has found since.

    It scans in a thread beside the sensor's ticks, and reloads the definitions (docs/decisions/0014). When the tables
    change, runs end, because their mark is another (`code_mark`); the next ones load the definitions.
    """

    assets: MirrorAssets
    _due: float = 0.0
    _work: threading.Thread | None = None
    _found: Config | None = None
    _message: str = ""

    def tick(self, server: CodeLocationOrigin | None, reload_seconds: int, log: logging.Logger) -> None:
        """Apply the tables that were found, and scan again when it is time.

        `server` has loaded the definitions, which may take it `reload_seconds`; a test has none.
        """
        if not self.assets.config.discovered.rules or (self._work is not None and self._work.is_alive()):
            return
        if self._found is not None:  # the definitions were reloaded, and this process still runs
            self.assets, self._found = replace(self.assets, config=self._found), None
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + _SCAN_SECONDS
            scan = partial(self._scan, server, reload_seconds)
            self._work = threading.Thread(target=scan, name="rediscovery", daemon=True)
            self._work.start()
            self._work.join(_TICK_WAITS_SECONDS)
        if self._message:
            log.info(self._message)
            self._message = ""

    def _scan(self, server: CodeLocationOrigin | None, reload_seconds: int) -> None:
        before, found = self.assets.config.tables, with_found_tables(self.assets.config, When.REFRESH)
        if found.tables == before:
            return
        new = [name for name in found.tables if name not in before]
        removed = [name for name in before if name not in found.tables]
        changes = [
            f"{len(names)} {what} ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})"
            for what, names in (("new", new), ("removed", removed))
            if names
        ]
        self._message = f"tables: {', '.join(changes) or 'same names, other places'}"
        try:
            load_config(found.file, when=When.NEVER)  # an invalid file would leave no code server
            reload_definitions(server, reload_seconds)
        except Exception as error:  # noqa: BLE001 whatever gRPC raises: the runs need no reload
            _LOG.warning("the definitions could not be reloaded; new tables are mirrored nevertheless (%s)", error)
        self._found = found


def reload_definitions(server: CodeLocationOrigin | None, seconds: int) -> None:
    """Reload the definitions, as a click on "Reload" does: another process replaces this one.

    A server that can't reload (`dagster api grpc`) ignores the request. A server that the daemon has started needs
    none: it is replaced every minute.
    """
    if isinstance(server, GrpcServerCodeLocationOrigin):
        server.create_client().reload_code(timeout=seconds)


def replicator_sensor(assets: MirrorAssets) -> dg.SensorDefinition:
    """Return the sensor that requests a run of the stand-in when a landing file waits, one run at a time."""
    job = assets.full_name(REPLICATE)

    @coded_tick()
    def sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if context.instance.get_runs(
            dg.RunsFilter(job_name=job, statuses=BUSY, tags=Location.of(context).tags), limit=1
        ):
            return dg.SkipReason("it is polling")
        waits = stand_in(assets.config, zone_of(assets, context.resources).store()).has_work()
        return dg.RunRequest() if waits else dg.SkipReason("no landing file waits")

    made = AssetJobSensor(
        name=assets.full_name(REPLICATOR_SENSOR),
        evaluation_fn=sensor,
        job_name=job,
        required_resource_keys=resource_keys(assets, with_spark=False),
        minimum_interval_seconds=_REPLICATE_SECONDS,
        default_status=default_sensor_status(),
        description="Runs the local stand-in for Fabric's replicator.",
    )
    made.groups = assets.groups
    return made
