"""Records the checks readable, not_held and not_failing when they change, for people and alerts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import dagster as dg

from mirror_assets.docs_links import error_link
from mirror_assets.errors import MirrorError, RebuildError, RetryError, UnknownOutcome
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import DOCS_URL, AssetKind, MetadataItem, link_item
from mirror_assets.orchestration.dagster_internals import RemoteRepositoryOrigin
from mirror_assets.orchestration.failed_runs import TABLE_FAILED, record_failed_run
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.recorded_checks import RecordedChecks
from mirror_assets.pipeline.errors import TableHeld
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, READABLE, Rest, failed_check
from mirror_assets.pipeline.table_watch import PollResult
from mirror_assets.telemetry.record import record_check
from mirror_assets.telemetry.scope import table_scope


class TableStates:
    """The newest results of these checks, read from Dagster when a table is first recorded."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        assets: MirrorAssets,
        repository: RemoteRepositoryOrigin | None = None,
        on_change: Callable[[Sequence[TableName]], None] = lambda _: None,
    ) -> None:
        """Read nothing yet; `on_change` takes the tables that fail or are on hold, whenever these change.

        `repository` is where failed runs are recorded; None for a command, which shows failures itself.
        """
        self._instance = instance
        self.assets = assets
        self._repository = repository
        self._on_change = on_change
        self._failing = list[TableName]()
        self._known: dict[tuple[TableName, str], str | None] = {}
        self._lock = threading.Lock()

    def record(self, poll: PollResult, log: logging.Logger) -> None:
        """Record the result of a poll, and log a new error.

        Errors that a retry may resolve are not a failure, and a table that pauses after failures keeps its state.
        """
        name, action = poll.context.name, poll.action
        if isinstance(action, MirrorError):
            if not isinstance(action, RetryError | UnknownOutcome) and self.failed(name, action):
                with table_scope(str(name)):
                    log.error(str(action))
        elif poll.is_complete and isinstance(action, Rest) and action.mark is not None:
            self.landed(name)

    def failed(self, table: TableName, error: MirrorError) -> bool:
        """Record that the table has failed, or is on hold if it needs a rebuild; return whether that is new."""
        check = failed_check(error)
        if check == NOT_FAILING and not isinstance(error, RetryError | UnknownOutcome):
            self._record(table, READABLE, None)  # other errors occur after the source was read
        if isinstance(error, RebuildError):
            error = TableHeld(str(table), error.what)
        return self._record(table, check, error)

    def landed(self, table: TableName) -> None:
        """Record that all three checks pass."""
        for check in (READABLE, NOT_HELD, NOT_FAILING):
            self._record(table, check, None)

    def _record(self, table: TableName, check: str, error: MirrorError | None) -> bool:
        """Record the check as failed with the error, or as passed, unless that is its newest result."""
        asset = self.assets.checked(AssetKind.SOURCE if check == READABLE else AssetKind.LANDING, table)
        why = error.what if error is not None else None
        record_check(str(table), check, passed=why is None)
        with self._lock:
            if (table, check) not in self._known:
                key = dg.AssetCheckKey(asset, check)
                last = RecordedChecks(self._instance, [key]).last(key)
                known = None if last is None or last.passed else last.description or "it has failed"
                self._known[table, check] = known
            was, self._known[table, check] = self._known[table, check], why
            failing = sorted({table for (table, _), why in self._known.items() if why is not None})
            if failing != self._failing:
                self._failing = failing
                self._on_change(failing)
        if was == why:
            return False
        metadata: dict[str, MetadataItem] = {}
        if error is not None:
            code = error.code.value
            metadata = {"code": code, "next_step": error.next_step, DOCS_URL: link_item(error_link(code))}
        evaluation = dg.AssetCheckEvaluation(
            asset,
            check,
            passed=why is None,
            blocking=True,
            description=why,
            metadata=metadata,
        )
        self._instance.report_runless_asset_event(evaluation)
        # An error that a retry may resolve is not a failed run: the checks lag and retention fail if it persists.
        if self._repository is not None and error is not None and not isinstance(error, RetryError | UnknownOutcome):
            job = self.assets.full_name(TABLE_FAILED)
            record_failed_run(self._instance, self._repository, job, table, error)
        return True
