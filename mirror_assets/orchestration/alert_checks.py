"""Reads what Dagster knows of checks, whoever has run them: evaluations since the last look, as conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from dagster._core.event_api import EventRecordsFilter
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from mirror_assets.alerts.causes import cause_of, is_transient, split_next
from mirror_assets.alerts.conditions import Condition
from mirror_assets.alerts.consequences import CHECK
from mirror_assets.config.alerts import Severity, Topic
from mirror_assets.errors import ErrorCode
from mirror_assets.pipeline.next_action import NOT_FAILING, NOT_HELD

_PAGE, _PAGES = 1000, 10
_FIRST_LOOK_SECONDS = 86_400.0
# A check that nobody evaluates any more has failed long enough: it may be gone.
_FORGOTTEN_MS = 7 * 86_400_000


@dataclass(frozen=True)
class CheckNews:
    """What evaluations since the last look say: the newest failure of each check, those that pass, how far it goes."""

    read_to: int
    failing: dict[str, Condition] = field(default_factory=dict)
    passing: frozenset[str] = frozenset()

    def over(self, known: Mapping[str, Condition], now_ms: int) -> dict[str, Condition]:
        """Return what is wrong after this news."""
        still = {key: one for key, one in known.items() if key not in self.passing and not _is_forgotten(one, now_ms)}
        return still | self.failing


def read_checks(instance: dg.DagsterInstance, after: int | None, tables: Mapping[str, str], now: float) -> CheckNews:
    """Return the news behind the event `after`; without one, of the last day.

    `tables` has the tables' names by their assets' keys.
    """
    read_to, failing, passing = after or 0, dict[str, Condition](), set[str]()
    since = None if after is not None else now - _FIRST_LOOK_SECONDS
    for _ in range(_PAGES):
        page = _page(instance, after if after is None else read_to, since)
        for record in page:
            read_to = record.storage_id
            evaluation = _evaluation(record)
            if evaluation is None:
                continue
            key = f"{CHECK}{evaluation.asset_key.to_user_string()}:{evaluation.check_name}"
            if not evaluation.passed and _may_pass_by_itself(evaluation):
                continue  # it says nothing yet, and takes nothing back
            passing.discard(key)
            failing.pop(key, None)
            table = tables.get(evaluation.asset_key.to_user_string())
            if evaluation.passed or table is None:
                passing.add(key)
            else:
                failing[key] = _condition(key, table, evaluation, record.timestamp)
        after = read_to
        if len(page) < _PAGE:
            break
    return CheckNews(read_to, failing, frozenset(passing))


def _page(instance: dg.DagsterInstance, after: int | None, since: float | None) -> Sequence[dg.EventLogRecord]:
    """Return the next evaluations, oldest first.

    SQLite keeps a file of events for each run, and those of checks also in one for all. Its own query reads the former,
    the query of its base class reads the latter, as on other databases.
    """
    storage = instance.event_log_storage
    wanted = EventRecordsFilter(dg.DagsterEventType.ASSET_CHECK_EVALUATION, after_cursor=after, after_timestamp=since)
    if isinstance(storage, SqlEventLogStorage):
        return SqlEventLogStorage.get_event_records(storage, wanted, limit=_PAGE, ascending=True)
    return storage.get_event_records(wanted, limit=_PAGE, ascending=True)


def _evaluation(record: dg.EventLogRecord) -> dg.AssetCheckEvaluation | None:
    event = record.event_log_entry.dagster_event
    return event.asset_check_evaluation_data if event is not None else None


def _may_pass_by_itself(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Return whether a table has failed by what the next run may resolve; the zone tells of the second time."""
    return evaluation.check_name == NOT_FAILING and is_transient(_said(evaluation, "code"))


def _condition(key: str, table: str, evaluation: dg.AssetCheckEvaluation, at: float) -> Condition:
    name, asset = evaluation.check_name, evaluation.asset_key
    what, next_step = split_next(evaluation.description or f"the check {name} fails")
    code = _said(evaluation, "code") or (ErrorCode.TABLE_HELD.value if name == NOT_HELD else None)
    cause = cause_of(code, name, what, table)
    return Condition(
        id=key,
        topic={NOT_HELD: Topic.HELD, NOT_FAILING: Topic.TABLE}.get(name, Topic.CHECK),
        severity=Severity.WARN if evaluation.severity is dg.AssetCheckSeverity.WARN else Severity.ERROR,
        cause=cause.key,
        subject=table,
        what={NOT_HELD: "waits for a person to have it rebuilt", NOT_FAILING: "can't be mirrored"}.get(
            name, f"check {name} fails"
        ),
        text=what,
        next_step=_said(evaluation, "next_step") or next_step or f"read the check {name} in docs/checks.md.",
        code=code,
        check=name,
        page=f"assets/{'/'.join(asset.path)}?view=checks&checkDetail={name}",
        since_ms=int(at * 1000),
        joins=cause.joins,
    )


def _said(evaluation: dg.AssetCheckEvaluation, name: str) -> str | None:
    found = evaluation.metadata.get(name)
    return str(found.value) if found is not None and found.value else None


def _is_forgotten(condition: Condition, now_ms: int) -> bool:
    return condition.id.startswith(CHECK) and now_ms - condition.since_ms > _FORGOTTEN_MS
