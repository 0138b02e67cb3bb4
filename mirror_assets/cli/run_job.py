"""Runs Dagster jobs in this process: prints their log records, and reports their failed steps."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import click
import dagster as dg

from mirror_assets.cli.dagster_home import opened_instance
from mirror_assets.cli.json_log import is_json, print_line
from mirror_assets.cli.output import note
from mirror_assets.config.model import Config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import NEXT, ErrorCode, ErrorRecord, MirrorError
from mirror_assets.orchestration.dagster_internals import (
    SINGLETON_REPOSITORY_NAME,
    LoadableTargetOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from mirror_assets.orchestration.runs import COMMAND_TAG, STOPPED

_LOGGER = "plain"
# As in workspace.yaml and pyproject.toml.
_CODE_LOCATION = "mirror_assets"


def execute(
    config: Config,
    job: str,
    ops: Mapping[str, dg.Config | dict[str, str]] | None = None,
    assets: Sequence[dg.AssetKey] | None = None,
    handler: logging.Handler | None = None,
    partition: str | None = None,
) -> dg.ExecuteInProcessResult:
    """Run the job or its partition, or some assets of it; return its result, which includes the steps that failed.

    `handler` receives the log records of the run; by default they are printed. Raises click.Abort if the run was
    interrupted, and what `opened_instance` raises.
    """
    if handler is None:
        handler = JsonLines() if is_json() else logging.StreamHandler()
        if not is_json():  # commands print errors themselves when they end
            handler.setFormatter(MessageOnly())
            handler.addFilter(lambda record: logging.INFO <= record.levelno < logging.ERROR)
    plain = logging.Logger("mirror_assets", level=logging.DEBUG)
    plain.addHandler(handler)
    logger = dg.LoggerDefinition(lambda _: plain, description="Messages alone, on the error stream.")
    configured = {op: found if isinstance(found, dg.Config) else {"config": found} for op, found in (ops or {}).items()}
    resolved = build_definitions(config).resolve_job_def(job).with_logger_defs({_LOGGER: logger})
    with opened_instance() as instance:
        _use_code_location(instance, job)
        result = resolved.execute_in_process(
            instance=instance,
            run_config=dg.RunConfig(ops=configured, loggers={_LOGGER: {"config": {}}}),
            asset_selection=assets,
            partition_key=partition,
            # A command has no time limit: `run --follow` runs for weeks.
            tags={COMMAND_TAG: job, dg.MAX_RUNTIME_SECONDS_TAG: "0"},
            raise_on_error=False,
        )
        run = instance.get_run_by_id(result.run_id)
        if run is not None and run.status is dg.DagsterRunStatus.CANCELED:
            note(STOPPED)
            raise click.Abort
        return result


def _use_code_location(instance: dg.DagsterInstance, job: str) -> None:
    """Have the instance record runs under the code location that the UI loads: its timeline omits all others."""
    target = LoadableTargetOrigin(module_name="mirror_assets.definitions")
    place = ManagedGrpcPythonEnvCodeLocationOrigin(target, _CODE_LOCATION)
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(place, SINGLETON_REPOSITORY_NAME), job)
    create = partial(instance.create_run_for_job, remote_job_origin=origin)
    instance.create_run_for_job = create  # type: ignore[method-assign]  # execute_in_process has no such parameter


@dataclass(frozen=True)
class StepFailed:
    """A failed step and its error, which is unexpected where it is none of this project's errors."""

    step: str
    error: ErrorRecord


def failures(result: dg.ExecuteInProcessResult, table: str | None = None) -> list[StepFailed]:
    """Return the failed steps and why they failed, except blocking checks, which have results of their own.

    `table` is the one that the job works on, if it is one.
    """
    found = []
    for event in result.all_events:
        error = event.step_failure_data.error if event.is_step_failure else None
        if not event.is_step_failure or (error and "DagsterAssetCheckFailedError" in (error.cls_name or "")):
            continue
        found.append(StepFailed(event.step_key or "", _error(event, table)))
    return found


def _error(event: dg.DagsterEvent, table: str | None) -> ErrorRecord:
    """Return the error of a failed step, from the metadata that `runs.failure` has written."""
    step, code = _metadata_value(event, "next_step") or "", _metadata_value(event, "code")
    return ErrorRecord(
        table,
        code or ErrorCode.UNEXPECTED.value,
        _text(event).removesuffix(f"{NEXT}{step}"),
        step,
        _metadata_value(event, "family") or MirrorError.family,
    )


def _metadata_value(event: dg.DagsterEvent, name: str) -> str | None:
    """Return the value with this name in the failure's metadata."""
    failure = event.step_failure_data.user_failure_data
    value = failure.metadata.get(name) if failure else None
    return str(value.value) if value else None


def _text(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error else "the step failed"


_NUMBERS = {"dagster/partition_row_count": "rows"} | {
    x: x for x in ("files", "bytes", "covered_version", "lag_seconds")
}


class MessageOnly(logging.Formatter):
    """Formats messages as they were logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message as it was logged, without the ids of run and step that Dagster adds."""
        meta = getattr(record, "dagster_meta", {})
        text = meta.get("orig_message") if isinstance(meta, dict) else None
        return str(text) if text else record.getMessage()


def logged_event(record: logging.LogRecord) -> dg.DagsterEvent | None:
    """Return the event of Dagster that the record logs, or None for a message."""
    meta = getattr(record, "dagster_meta", {})
    event = meta.get("dagster_event") if isinstance(meta, dict) else None
    return event if isinstance(event, dg.DagsterEvent) else None


def materialization(event: dg.DagsterEvent) -> dg.AssetMaterialization | None:
    """Return the materialization that the event records, or None for another event."""
    if event.event_type is not dg.DagsterEventType.ASSET_MATERIALIZATION:
        return None
    return event.step_materialization_data.materialization


class JsonLines(logging.Handler):
    """Prints the messages of a run, and each slice that has landed; other events of Dagster are omitted."""

    def __init__(self) -> None:
        """Print messages of every level."""
        super().__init__(logging.DEBUG)
        self.setFormatter(MessageOnly())

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message, or the numbers of the slice."""
        run = {"run": getattr(record, "dagster_meta", {}).get("run_id")}
        event = logged_event(record)
        if event is None:
            if record.levelno >= logging.INFO:
                print_line(record.levelname.lower(), self.format(record), run)
            return
        landed = materialization(event)
        if landed is not None and "covered_version" in landed.metadata:
            numbers = {name: landed.metadata[key].value for key, name in _NUMBERS.items() if key in landed.metadata}
            print_line("info", "the slice has landed", numbers | run)
