"""Shows a table that waits for a person where people look: as its check, whoever found it out."""

from __future__ import annotations

import dagster as dg

from mirror_assets.assets.names import Kind, asset_key
from mirror_assets.landing.names import TableName
from mirror_assets.mirroring.due import NOT_HELD


def show_held(instance: dg.DagsterInstance, table: TableName, why: str | None) -> None:
    """Let the check not_held fail with the reason, or pass again; nothing is recorded while it stays as it is."""
    zone = asset_key(Kind.LANDING_ZONE, table)
    latest = _latest(instance, dg.AssetCheckKey(zone, NOT_HELD))
    shown = latest is None or latest.passed
    if shown == (why is None) and (latest is None or (latest.description or None) == why):
        return
    evaluation = dg.AssetCheckEvaluation(zone, NOT_HELD, passed=why is None, blocking=True, description=why)
    instance.report_runless_asset_event(evaluation)


def _latest(instance: dg.DagsterInstance, check: dg.AssetCheckKey) -> dg.AssetCheckEvaluation | None:
    record = instance.get_latest_asset_check_evaluation_record(check)
    event = record.event.dagster_event if record is not None and record.event is not None else None
    evaluated = event is not None and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return event.asset_check_evaluation_data if event is not None and evaluated else None
