"""Records the checks readable, not_held and not_failing when they change: people and alerts see how a table is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import dagster as dg
from dagster._core.remote_origin import RemoteRepositoryOrigin

from mirror_assets.errors import MirrorError, RebuildError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.orchestration.failed_runs import record_failed_run
from mirror_assets.pipeline.errors import TableHeld
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, READABLE, Rest, failed_check
from mirror_assets.pipeline.table_watch import Seen
from mirror_assets.telemetry.record import record_check
from mirror_assets.telemetry.scope import table_scope


class TableStates:
    """Knows the newest results, of all instances and runs from the first time on that a table is asked about."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        repository: RemoteRepositoryOrigin | None = None,
        told: Callable[[Sequence[TableName]], None] = lambda _: None,
    ) -> None:
        """Read nothing yet; `told` is called with the tables that fail, or are held, when these become others.

        `repository` is where failed runs are recorded; None for a command, which shows failures itself.
        """
        self._instance = instance
        self._repository = repository
        self._told = told
        self._failing = list[TableName]()
        self._known: dict[tuple[TableName, str], str | None] = {}
        self._lock = threading.Lock()

    def tell(self, seen: Seen, log: logging.Logger) -> None:
        """Record what a look says of the table; log an error when it is a new one."""
        if self._seen(seen) and isinstance(seen.action, MirrorError):
            with table_scope(str(seen.context.name)):
                log.error(str(seen.action))

    def _seen(self, seen: Seen) -> bool:
        """Record what a complete look says; return whether a check has changed.

        What time resolves is no failure, and a table that is left alone for a while stays what it was.
        """
        name, action = seen.context.name, seen.action
        if isinstance(action, MirrorError):
            return not isinstance(action, RetryError | UnknownOutcome) and self.failed(name, action)
        if not seen.is_complete or not isinstance(action, Rest) or action.mark is None:
            return False
        return self.landed(name)

    def failed(self, table: TableName, error: MirrorError) -> bool:
        """Record that the table has failed, or is held if only a rebuild helps; return whether that is new."""
        check = failed_check(error)
        if check == NOT_FAILING and not isinstance(error, RetryError | UnknownOutcome):
            self._record(table, READABLE, None)  # who has met something else has read the source
        if isinstance(error, RebuildError):
            error = TableHeld(str(table), error.what)
        return self._record(table, check, error)

    def landed(self, table: TableName) -> bool:
        """Record that nothing holds up the table; return whether that is new."""
        changed = [self._record(table, check, None) for check in (READABLE, NOT_HELD, NOT_FAILING)]
        return any(changed)

    def _record(self, table: TableName, check: str, error: MirrorError | None) -> bool:
        """Record the check as failed with the error, or as passed, unless that is its newest result."""
        asset = asset_key(Kind.SOURCE if check == READABLE else Kind.LANDING, table)
        why = error.what if error is not None else None
        record_check(str(table), check, passed=why is None)
        with self._lock:
            if (table, check) not in self._known:
                self._known[table, check] = _newest(self._instance, dg.AssetCheckKey(asset, check))
            was, self._known[table, check] = self._known[table, check], why
            if why is not None or was is not None:
                self._tell_failing()
        if was == why:
            return False
        evaluation = dg.AssetCheckEvaluation(
            asset,
            check,
            passed=why is None,
            blocking=True,
            description=why,
            metadata={} if error is None else {"code": error.code.value, "next_step": error.next_step},
        )
        self._instance.report_runless_asset_event(evaluation)
        # What time resolves is red once it has lasted: the checks lag and retention say so.
        if self._repository is not None and error is not None and not isinstance(error, RetryError | UnknownOutcome):
            record_failed_run(self._instance, self._repository, table, error)
        return True

    def _tell_failing(self) -> None:
        failing = sorted({table for (table, _), why in self._known.items() if why is not None})
        if failing != self._failing:
            self._failing = failing
            self._told(failing)


def _newest(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> str | None:
    """Return why the check has failed; None when it has passed, or was never evaluated."""
    record = instance.get_latest_asset_check_evaluation_record(check)
    event = record.event.dagster_event if record is not None and record.event is not None else None
    if event is None or event.event_type is not dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    evaluation = event.asset_check_evaluation_data
    return None if evaluation.passed else evaluation.description or "it has failed"
