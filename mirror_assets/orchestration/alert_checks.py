"""Reads the newest result of each check of the tables, no matter what recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import dagster as dg

from mirror_assets.alerts.conditions import Condition, ConditionKind, may_pass, with_next
from mirror_assets.alerts.zone import held
from mirror_assets.config.alerts import Severity
from mirror_assets.errors import ErrorCode
from mirror_assets.orchestration.asset_names import AssetKind
from mirror_assets.orchestration.check import SKIPPED
from mirror_assets.orchestration.dagster_internals import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    SqlEventLogStorage,
)
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD, READABLE

_PAGE, _KEYS_A_QUERY = 1000, 500
_Result = tuple[dg.AssetCheckEvaluation, float]


@dataclass
class CheckReader:
    """Reads the newest results once, and later only the evaluations since; `defined` are the checks of definitions."""

    defined: frozenset[dg.AssetCheckKey]
    _read_to: int | None = None
    _known: frozenset[dg.AssetCheckKey] = frozenset()
    _failing: dict[dg.AssetCheckKey, _Result] = field(default_factory=dict)

    def conditions(self, instance: dg.DagsterInstance, assets: MirrorAssets) -> Iterator[Condition]:
        """Yield the checks of the tables that have failed."""
        by_asset, keys = assets_of(assets), _keys(self.defined, assets)
        if self._read_to is None:
            newest = _evaluations(instance, None, limit=1, ascending=False)
            self._read_to = newest[0].storage_id if newest else 0
        if keys is not self._known:
            unread, self._known = [*(keys - self._known)], keys
            for begin in range(0, len(unread), _KEYS_A_QUERY):
                self._note(_read(instance, unread[begin : begin + _KEYS_A_QUERY]))
        while page := _evaluations(instance, self._read_to, limit=_PAGE, ascending=True):
            events = ((record.event_log_entry.dagster_event, record.timestamp) for record in page)
            self._note((event.asset_check_evaluation_data, at) for event, at in events if event is not None)
            self._read_to = page[-1].storage_id
        for key, result in self._failing.items():
            if key in keys:
                yield _failed(*by_asset[key.asset_key], *result)

    def _note(self, results: Iterable[_Result]) -> None:
        for found, at in results:
            if found.passed or SKIPPED in found.metadata:
                self._failing.pop(found.asset_check_key, None)
            else:
                self._failing[found.asset_check_key] = (found, at)


@lru_cache(maxsize=2)
def assets_of(assets: MirrorAssets) -> Mapping[dg.AssetKey, tuple[AssetKind, str]]:
    """Return the kind and table of each asset of the mirror."""
    return {assets.key(kind, name): (kind, str(name)) for name in assets.config.names for kind in AssetKind}


@lru_cache(maxsize=2)
def _keys(defined: frozenset[dg.AssetCheckKey], mirror: MirrorAssets) -> frozenset[dg.AssetCheckKey]:
    """Return the tables' checks; tables discovered after the definitions were loaded may have any check."""
    assets, names = {key.asset_key for key in defined}, {key.name for key in defined}
    found = assets_of(mirror)
    unknown = [dg.AssetCheckKey(asset, name) for asset in found if asset not in assets for name in names]
    return frozenset((*(key for key in defined if key.asset_key in found), *unknown))


def _evaluations(
    instance: dg.DagsterInstance, after: int | None, *, limit: int, ascending: bool
) -> Sequence[dg.EventLogRecord]:
    """Return evaluations after an event.

    SQLite has a file of events for each run, and those of checks also in one for all. Its own query reads the former;
    the query of its base class reads the latter, as with other databases.
    """
    storage = instance.event_log_storage
    wanted = dg.EventRecordsFilter(dg.DagsterEventType.ASSET_CHECK_EVALUATION, after_cursor=after)
    if isinstance(storage, SqlEventLogStorage):
        return SqlEventLogStorage.get_event_records(storage, wanted, limit=limit, ascending=ascending)
    return storage.get_event_records(wanted, limit=limit, ascending=ascending)


def _read(instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> Iterator[_Result]:
    """Yield the newest results and their times."""
    storage, completed = instance.event_log_storage, COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES
    for key, newest in storage.get_latest_asset_check_execution_by_key(keys).items():
        is_planned = newest.status not in completed
        earlier = storage.get_asset_check_execution_history(key, limit=1, status=completed) if is_planned else [newest]
        if earlier and earlier[0].evaluation is not None and earlier[0].event is not None:
            yield earlier[0].evaluation, earlier[0].event.timestamp


def _failed(kind: AssetKind, table: str, found: dg.AssetCheckEvaluation, at: float) -> Condition:
    """Return the condition of a failed check; not_held and not_failing give those that the landing zone also has."""
    check, values = found.check_name, {name: str(value.value or "") for name, value in found.metadata.items()}
    next_step = values.get("next_step") or f"read the section {check} of the page on asset checks."
    text, code = with_next(found.description or "It has failed.", next_step), values.get("code") or None
    page = f"assets/{'/'.join(found.asset_key.path)}?view=checks&checkDetail={check}"
    if check == NOT_HELD:
        return held(table, text, page)
    severity = Severity.WARN if found.severity is dg.AssetCheckSeverity.WARN else Severity.ERROR
    if kind is AssetKind.CHANGES and severity is Severity.ERROR:
        code = ErrorCode.CHECKS_FAILED.value  # the slice is not published because of it
    since_ms = int(at * 1000)
    if check in (NOT_FAILING, READABLE):
        what, is_passing = "can't be mirrored", may_pass(code)
        return Condition(
            f"table:{table}", ConditionKind.TABLE, table, what, text, severity, code, check, page, since_ms, is_passing
        )
    key, what = f"check:{found.asset_key.to_user_string()}:{check}", f"check {check} fails"
    return Condition(key, ConditionKind.CHECK, table, what, text, severity, code, check, page, since_ms)
