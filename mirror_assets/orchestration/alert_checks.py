"""Reads the newest result of each check of the tables, no matter what recorded it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.event_api import EventRecordsFilter
from dagster._core.storage.asset_check_execution_record import COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from mirror_assets.alerts.conditions import Condition, may_pass, with_next
from mirror_assets.alerts.conditions import Kind as Conditions
from mirror_assets.alerts.zone import held
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.asset_names import Kind, asset_key
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD

_PAGE, _KEYS_A_QUERY = 1000, 500
_Result = tuple[dg.AssetCheckEvaluation, float]


@dataclass
class CheckReader:
    """Reads the newest results once, and later only the evaluations since; `defined` are the checks of definitions."""

    defined: frozenset[dg.AssetCheckKey]
    _read_to: int | None = None
    _newest: dict[dg.AssetCheckKey, _Result | None] = field(default_factory=dict)

    def conditions(self, instance: dg.DagsterInstance, tables: Collection[TableName]) -> Iterator[Condition]:
        """Yield the checks of these tables that have failed."""
        by_asset = {asset_key(kind, name): (kind, str(name)) for name in tables for kind in Kind}
        # Tables that were discovered after the definitions were loaded may have any check.
        assets, names = {key.asset_key for key in self.defined}, {key.name for key in self.defined}
        keys = [key for key in self.defined if key.asset_key in by_asset]
        keys += [dg.AssetCheckKey(asset, name) for asset in by_asset if asset not in assets for name in names]
        self._refresh(instance, keys)
        for key in keys:
            newest = self._newest[key]
            if newest is not None and not newest[0].passed:
                yield _failed(*by_asset[key.asset_key], *newest)

    def _refresh(self, instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> None:
        if self._read_to is None:
            newest = _evaluations(instance, None, limit=1, ascending=False)
            self._read_to = newest[0].storage_id if newest else 0
        unread = [key for key in keys if key not in self._newest]
        for begin in range(0, len(unread), _KEYS_A_QUERY):
            asked = unread[begin : begin + _KEYS_A_QUERY]
            self._newest |= dict.fromkeys(asked) | _read(instance, asked)
        while page := _evaluations(instance, self._read_to, limit=_PAGE, ascending=True):
            for record in page:
                event = record.event_log_entry.dagster_event
                if event is not None:
                    found = event.asset_check_evaluation_data
                    self._newest[found.asset_check_key] = (found, record.timestamp)
            self._read_to = page[-1].storage_id


def _evaluations(
    instance: dg.DagsterInstance, after: int | None, *, limit: int, ascending: bool
) -> Sequence[dg.EventLogRecord]:
    """Return evaluations after an event.

    SQLite has a file of events for each run, and those of checks also in one for all. Its own query reads the former;
    the query of its base class reads the latter, as with other databases.
    """
    storage = instance.event_log_storage
    wanted = EventRecordsFilter(dg.DagsterEventType.ASSET_CHECK_EVALUATION, after_cursor=after)
    if isinstance(storage, SqlEventLogStorage):
        return SqlEventLogStorage.get_event_records(storage, wanted, limit=limit, ascending=ascending)
    return storage.get_event_records(wanted, limit=limit, ascending=ascending)


def _read(instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> dict[dg.AssetCheckKey, _Result | None]:
    """Return the newest results and their times."""
    storage, found = instance.event_log_storage, dict[dg.AssetCheckKey, _Result | None]()
    completed = COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
    for key, newest in storage.get_latest_asset_check_execution_by_key(keys).items():
        is_planned = newest.status not in completed
        earlier = storage.get_asset_check_execution_history(key, limit=1, status=completed) if is_planned else [newest]
        if earlier and earlier[0].evaluation is not None and earlier[0].event is not None:
            found[key] = (earlier[0].evaluation, earlier[0].event.timestamp)
    return found


def _failed(kind: Kind, table: str, found: dg.AssetCheckEvaluation, at: float) -> Condition:
    """Return the condition of a failed check; not_held and not_failing give those that the landing zone also has."""
    check, values = found.check_name, {name: str(value.value or "") for name, value in found.metadata.items()}
    next_step = values.get("next_step") or f"read the check {check} in docs/checks.md."
    text, code = with_next(found.description or "It has failed.", next_step), values.get("code") or None
    page = f"assets/{'/'.join(found.asset_key.path)}?view=checks&checkDetail={check}"
    if check == NOT_HELD:
        return held(table, text, page)
    severity = Severity.WARN if found.severity is dg.AssetCheckSeverity.WARN else Severity.ERROR
    if kind is Kind.CHANGE_FEED and severity is Severity.ERROR:
        code = ErrorCode.CHECKS_FAILED.value  # the slice is not published because of it
    since_ms = int(at * 1000)
    if check == NOT_FAILING:
        what, is_passing = "can't be mirrored", may_pass(code)
        return Condition(
            f"table:{table}", Conditions.TABLE, table, what, text, severity, code, check, page, since_ms, is_passing
        )
    key, what = f"check:{found.asset_key.to_user_string()}:{check}", f"check {check} fails"
    return Condition(key, Conditions.CHECK, table, what, text, severity, code, check, page, since_ms)
