"""A mirror of tables that don't exist, for tests of names and records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from mirror_assets.config.load import parse_config
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.mirror_assets import MirrorAssets


def assets_of(tables: Sequence[TableName], settings: str = "keys: [id]") -> MirrorAssets:
    """Return the assets of these tables, each with these settings."""
    lines = [f"  {table}: {{source: ./{table}, {settings}}}" for table in tables]
    text = "\n".join(["landing_zone: {path: ./landing}", "mirror: {path: ./mirror}", "tables:", *lines])
    return MirrorAssets(parse_config(text.encode(), Path("/nowhere/mirror.yaml"), {}))


def failure_of(result: dg.ExecuteInProcessResult) -> dg.Failure:
    """Return what the one failed step of the run says."""
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    shown = failed.step_failure_data.user_failure_data
    assert shown is not None
    return dg.Failure(shown.description or "", metadata=shown.metadata)


def evaluate(sensor: dg.SensorDefinition, context: dg.SensorEvaluationContext) -> object:
    """Return what a tick returns; Dagster's direct invocation would pass each resource as an argument."""
    return sensor._raw_fn(context)
