"""Runs Dagster jobs in this process, and says what failed in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from mirror_assets.config import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.console import PLAIN


def execute(
    config: Config,
    job: str,
    ops: Mapping[str, dg.Config] | None = None,
    assets: Sequence[dg.AssetKey] | None = None,
) -> dg.ExecuteInProcessResult:
    """A run of the job, or of some assets of it; a step that fails is in the result."""
    run_config = dg.RunConfig(ops=dict(ops or {}), loggers={PLAIN: {"config": {}}})
    with _instance() as instance:
        definition = build_definitions(config).resolve_job_def(job)
        return definition.execute_in_process(
            instance=instance, run_config=run_config, asset_selection=assets, raise_on_error=False
        )


@dataclass(frozen=True)
class StepFailed:
    """A step's failure: its message, and the family of the error where it is one of ours."""

    step: str
    text: str
    family: str


def failures(result: dg.ExecuteInProcessResult) -> list[StepFailed]:
    """What made steps fail, but for blocking checks: their own lines say it better."""
    failed = [event for event in result.all_events if event.is_step_failure and not _is_check_failure(event)]
    return [StepFailed(event.step_key or "", _text(event), _family(event)) for event in failed]


@contextmanager
def _instance() -> Iterator[dg.DagsterInstance]:
    """The instance of DAGSTER_HOME, so that the UI shows what the command did; without one, a passing one."""
    opened = dg.DagsterInstance.get() if os.environ.get("DAGSTER_HOME") else dg.DagsterInstance.ephemeral()
    with opened as instance:
        yield instance


def _is_check_failure(event: dg.DagsterEvent) -> bool:
    error = event.step_failure_data.error
    return bool(error and "DagsterAssetCheckFailedError" in (error.cls_name or ""))


def _family(event: dg.DagsterEvent) -> str:
    told = event.step_failure_data.user_failure_data
    family = told.metadata.get("family") if told else None
    return str(family.value) if family else MirrorError.family


def _text(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error else "the step failed"
