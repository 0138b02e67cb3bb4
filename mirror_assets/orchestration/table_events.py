"""Records the work on tables as events of their assets, in runs that are no asset runs.

Events and log lines are recorded in order; they wait in memory while Dagster's storage doesn't respond.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial

import dagster as dg

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.rebuild import read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets.orchestration.checks import merged, staged_checks
from mirror_assets.orchestration.dagster_internals import AssetEvent, CheckError, keep_connections, log_asset_event
from mirror_assets.orchestration.event_metadata import landed_metadata, source_event, staged_metadata
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.partitions import delete_keys, ended_keys, surplus_keys
from mirror_assets.orchestration.recorded_checks import HIDDEN_SECONDS
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.check_slice import blocking_checks
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.slice_source import slice_key
from mirror_assets.source.planner import PlannedSlice
from mirror_assets.verify.check_result import CheckResult

_RETRY_SECONDS = 5.0
# An event of Dagster takes up to 20 KB.
_FULL = 2000
_END_SECONDS = 20.0
# Errors of an event itself: a retry would not help, and would keep all others waiting.
_DEFECTS = (MirrorError, dg.DagsterError, CheckError, AttributeError, LookupError, TypeError, ValueError)
_LOG = logging.getLogger(__name__)
# Newest slices of a table that stay partitions in Dagster, which advises 100,000 an asset at most.
KEPT_PARTITIONS = 10_000
# The partitions are counted when this many were added, because counting reads all of them.
_COUNTED_AFTER = 100


def is_storage_fault(error: Exception) -> bool:
    """Return whether Dagster's storage may have failed: each database has errors of its own, without a common base."""
    return not isinstance(error, _DEFECTS)


@dataclass
class EventQueue:
    """Records events through calls of Dagster, several threads at once.

    With `keeps_events`, for a run that mirrors for hours, a call that fails because of Dagster's storage is retried
    every few seconds, and the calls after it wait. Otherwise its error is raised.
    """

    run_log: logging.Logger
    keeps_events: bool = False
    _calls: deque[Callable[[], object]] = field(default_factory=deque, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    _retry_at: float = field(default=0.0, init=False)
    _waits_since: float | None = field(default=None, init=False)

    @property
    def is_waiting(self) -> bool:
        """Whether Dagster's storage has failed, and events wait."""
        return self._waits_since is not None

    def record(self, *calls: Callable[[], object]) -> None:
        """Make the calls, or queue them while others wait."""
        with self._lock:
            self._calls.extend(partial(copy_context().run, call) for call in calls)
            self.flush()

    def info(self, message: str) -> None:
        """Log a line."""
        self._write(logging.INFO, message)

    def warning(self, message: str) -> None:
        """Log a warning."""
        self._write(logging.WARNING, message)

    def error(self, message: str) -> None:
        """Log an error."""
        self._write(logging.ERROR, message)

    def flush(self) -> None:
        """Make the calls that wait, if it is time."""
        with self._lock:
            while self._calls and time.monotonic() >= self._retry_at:
                try:
                    self._calls[0]()
                except Exception as error:
                    if not self.keeps_events:
                        self._calls.clear()
                        raise
                    if is_storage_fault(error):
                        self._wait(error)
                        return
                    _LOG.exception("an event can't be recorded in Dagster")
                self._calls.popleft()
            if self._waits_since is not None and not self._calls:
                seconds, self._waits_since = time.monotonic() - self._waits_since, None
                self.warning(f"Dagster's storage did not respond for {seconds:.0f} s: events were recorded later")

    def _wait(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        if self._waits_since is None:
            self._waits_since = time.monotonic()
            _LOG.warning("Dagster's storage does not respond; mirroring continues, and events wait: %s", error)

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> None:
        """Wait while the queue is full, so that no event is lost; give up when the run is stopping."""
        while len(self._calls) >= _FULL and not is_stopping():
            time.sleep(1.0)
            self.flush()

    def close(self) -> None:
        """Retry what waits for up to 20 seconds; log what can't be recorded at the end of the run."""
        deadline = time.monotonic() + _END_SECONDS
        while self._calls and time.monotonic() < deadline:
            self.flush()
            time.sleep(min(1.0, _RETRY_SECONDS) if self._calls else 0.0)
        if self._calls:
            _LOG.error(
                "the run ends while Dagster's storage does not respond: %d events and log lines are not recorded. The "
                "landing zone has all that has landed; Dagster does not show it.",
                len(self._calls),
            )

    def _write(self, level: int, message: str) -> None:
        if len(self._calls) < _FULL:
            self.record(partial(self.run_log.log, level, message))


class TableEvents:
    """Registers and logs slices in a run; several tables may do so at once."""

    def __init__(
        self,
        context: dg.OpExecutionContext,
        assets: MirrorAssets,
        queue: EventQueue | None = None,
    ) -> None:
        """Log into the run of this context through the queue.

        In Dagster, a check result of a run applies to everything that the run materializes of the asset. So the checks
        are logged with a table's first slice in the run only.
        """
        self._context, self._assets = context, assets
        self._instance = context.instance
        keep_connections(self._instance)
        self._queue = queue or EventQueue(context.log)
        self._uncounted: dict[TableName, int] = {}
        self._in_run: set[dg.AssetCheckKey] = set()
        # From when on the results of a table's next slice are recorded (monotonic seconds); at once if absent.
        self._due_at: dict[TableName, float] = {}

    def planned(self, table: TableName, slices: Sequence[PlannedSlice]) -> None:
        """Register the slices as partitions, in order."""
        keys = [str(slice_key(planned)) for planned in slices]
        if keys:
            partitions = self._assets.partitions_name(table)
            self._queue.record(partial(self._instance.add_dynamic_partitions, partitions, keys))
            self._uncounted[table] = self._uncounted.get(table, _COUNTED_AFTER) + len(keys)

    def landed(self, table_context: TableContext, processed: ProcessedSlice) -> None:
        """Log one slice: its source, then changes and landing. A snapshot in chunks is logged with its last chunk."""
        if processed.published.manifest.loading is not None:
            return
        key = str(processed.record.slice)
        assets, name = self._assets, table_context.name
        feed, zone = assets.key(AssetKind.CHANGES, name), assets.key(AssetKind.LANDING, name)
        rows, steps = processed.planned.rows, processed.steps
        observed = source_event(assets, table_context, processed.source, processed.record.slice, rows)
        staged = dg.AssetMaterialization(feed, partition=key, metadata=staged_metadata(processed.record))
        landed = dg.AssetMaterialization(
            zone, partition=key, metadata=landed_metadata(assets, table_context, processed.published, steps)
        )
        manifest = processed.published.manifest
        self.log([observed, staged, landed])
        if self._uncounted.get(name, _COUNTED_AFTER) >= _COUNTED_AFTER:
            self._uncounted[name] = 0
            self._queue.record(partial(self._delete_surplus, name, manifest.epoch, manifest.covered))

    def _delete_surplus(self, table: TableName, epoch: int, covered: int) -> None:
        partitions = self._assets.partitions_name(table)
        surplus = surplus_keys(self._instance, partitions, KEPT_PARTITIONS, epoch, covered)
        delete_keys(self._instance, partitions, surplus)

    def checked(self, table_context: TableContext, processed: ProcessedSlice) -> None:
        """Record the results of a landed slice's checks: of the first in the run, and again after a failure."""
        name = table_context.name
        if processed.published.manifest.loading is not None or time.monotonic() < self._due_at.get(name, 0.0):
            return
        key = str(processed.record.slice)
        note = f"slice {key}, and each later slice of this run before it lands"
        self._record_staged(name, self._evaluations(name, key, processed.results, note))

    def refused(self, table_context: TableContext, error: ChecksFailed) -> None:
        """Record the results of a slice that may not land."""
        self._due_at[table_context.name] = 0.0
        self._report(self._evaluations(table_context.name, str(error.key), error.results))

    def record(self, found: Sequence[dg.AssetCheckEvaluation]) -> bool:
        """Record results: in the run, or outside of it those of checks that have one in the run.

        Dagster keeps one result of a check per run, and would lose a failure. Returns whether all are in the run: one
        outside of it is hidden by the asset's next event.
        """
        known = [one for one in found if one.asset_check_key in self._in_run]
        self.log([one for one in found if one.asset_check_key not in self._in_run])
        self._report(known)
        self._in_run.update(one.asset_check_key for one in found)
        return not known

    def _record_staged(self, table: TableName, found: Sequence[dg.AssetCheckEvaluation]) -> None:
        """Record the results of a table's staged slices, and from when on they are to be recorded again."""
        self._due_at[table] = math.inf if self.record(found) else time.monotonic() + HIDDEN_SECONDS

    def _report(self, found: Sequence[dg.AssetCheckEvaluation]) -> None:
        """Record results outside of the run."""
        self._queue.record(*(partial(self._instance.report_runless_asset_event, one) for one in found))

    def rebuilt(self, table_context: TableContext, published: Published) -> None:
        """Register and log the snapshot of a rebuild, and delete the partitions of slices that can't land any more.

        The staged files of a rebuild are deleted when it has landed, so the metadata is made from the manifest.
        """
        assets, name, manifest = self._assets, table_context.name, published.manifest
        self._queue.record(partial(self._register_rebuild, name, str(manifest.slice), manifest.epoch))
        state = table_context.log.state()
        landed = landed_metadata(assets, table_context, Published(Outcome.LANDED, manifest, published.entries))
        record = drive(read_rebuild(name), table_context.store)
        because = (record.reason if record else None) or "a person requested it"
        landed = {"summary": f"rebuilt: {landed['summary']}", "rebuilt_because": because} | {
            item: value for item, value in landed.items() if item != "summary"
        }
        names = ("summary", "rebuilt_because", "dagster/partition_row_count")
        staged = {item: landed[item] for item in names}
        events = [
            dg.AssetMaterialization(assets.key(kind, name), partition=str(manifest.slice), metadata=metadata)
            for kind, metadata in ((AssetKind.CHANGES, staged), (AssetKind.LANDING, landed))
        ]
        self.log([source_event(assets, table_context, state, manifest.slice, manifest.landed_rows), *events])
        key = str(manifest.slice)  # no part of a snapshot lands before it has passed
        results = [CheckResult(check) for check in blocking_checks(table_context)]
        note = f"slice {key}, before the table folder was dropped"
        self._record_staged(name, self._evaluations(name, key, results, note))

    def _register_rebuild(self, table: TableName, key: str, epoch: int) -> None:
        partitions, zone = self._assets.partitions_name(table), self._assets.key(AssetKind.LANDING, table)
        delete_keys(self._instance, partitions, ended_keys(self._instance, partitions, zone, epoch))
        self._instance.add_dynamic_partitions(partitions, [key])

    def log(self, events: Sequence[AssetEvent]) -> None:
        """Record the events, in order and together."""
        self._queue.record(*(partial(log_asset_event, self._context, event) for event in events))

    def _evaluations(
        self, table: TableName, key: str, results: Sequence[CheckResult], note: str = ""
    ) -> list[dg.AssetCheckEvaluation]:
        """Return the results of a slice's checks as events; `note` is for those that passed."""
        config = self._assets.config
        named = {check.name: check for check in staged_checks(config, config.table(table))}
        return [
            named[one.check].evaluation(self._assets, table, replace(merged(one.check, [(key, (one,))]), note=note))
            for one in results
        ]
