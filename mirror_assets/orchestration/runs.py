"""Tags of runs, and how a step fails, stops or is canceled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

import dagster as dg

from mirror_assets.config.model import Config
from mirror_assets.docs_links import error_link
from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.orchestration.dagster_internals import (
    HIDDEN_TAG_PREFIX,
    REPOSITORY_LABEL_TAG,
    CodeLocationOrigin,
    SqlRunStorage,
)
from mirror_assets.orchestration.errors import LOCATION_SHARED
from mirror_assets.orchestration.event_metadata import DOCS_URL, link_item
from mirror_assets.orchestration.translator import MetadataItem
from mirror_assets.pipeline.leases import tables_digest

# Dagster's UI hides tags with this prefix, which only sensors read.
BATCH_TAG = f"{HIDDEN_TAG_PREFIX}mirror_batch"
# The process of a run of the sensor `mirror`, hidden in Dagster's UI: a sensor detects by it that a silent run was
# killed.
PROCESS_TAG = f"{HIDDEN_TAG_PREFIX}mirror_process"
# What a schedule mirrors, hidden as well.
MIRROR_TAG = f"{HIDDEN_TAG_PREFIX}mirror_of"
# A run of checks that has reported its evaluation; it may have failed because of what it found.
EVALUATED_TAG, EVALUATED_ALL, EVALUATED_SOME = f"{HIDDEN_TAG_PREFIX}mirror_evaluated", "all", "some"
TABLE_TAG = "mirror/table"
COMMAND_TAG = "mirror/command"
FAILING_TAG = "mirror/failing"
SLICE_TAG = "mirror/slice"
VERSIONS_TAG = "mirror/versions"
_NAMED = 3
BUSY_WORDS = {
    dg.DagsterRunStatus.QUEUED: "waits in Dagster's queue",
    dg.DagsterRunStatus.NOT_STARTED: "is starting",
    dg.DagsterRunStatus.STARTING: "is starting",
    dg.DagsterRunStatus.STARTED: "is starting or ending",
    dg.DagsterRunStatus.CANCELING: "is being canceled",
}
BUSY = list(BUSY_WORDS)


class Location(NamedTuple):
    """A repository in a code location; without a name, that of a test."""

    repository: str
    name: str

    @classmethod
    def of(cls, context: dg.SensorEvaluationContext) -> Location:
        """Return the location whose sensor is evaluated."""
        origin = context.code_location_origin
        return cls(context.repository_name or "", origin.location_name if origin else "")

    @property
    def tags(self) -> dict[str, str]:
        """The tag that Dagster gives to each run of the location; runs of the command line have none."""
        return {REPOSITORY_LABEL_TAG: f"{self.repository}@{self.name}"} if self.name else {}


def tag_slices(instance: dg.DagsterInstance, run: dg.DagsterRun, table: TableName, keys: Sequence[SliceKey]) -> None:
    """Tag the run with the table, its slices in order, and their versions, once for all steps."""
    if SLICE_TAG in run.tags or not keys:
        return
    first, last = keys[0], keys[-1]
    slices = str(first) if len(keys) == 1 else f"{first} ... {last} ({len(keys)} slices)"
    spanned = f"{first.first}" if first.first == last.last else f"{first.first} to {last.last}"
    instance.add_run_tags(run.run_id, {TABLE_TAG: str(table), SLICE_TAG: slices, VERSIONS_TAG: spanned})


def tag_tables(instance: dg.DagsterInstance, run_id: str, tables: Sequence[TableName]) -> None:
    """Tag a run of a job with the names of its tables, or with how many they are."""
    text = ", ".join(map(str, tables)) if len(tables) <= _NAMED else f"{len(tables)} tables"
    instance.add_run_tags(run_id, {TABLE_TAG: text})


def mirror_name(instance: dg.DagsterInstance, origin: CodeLocationOrigin | None, name: str = "") -> str:
    """Return a name for the mirror `name` in this code location of this instance, unique in a landing zone."""
    storage = instance.run_storage
    known = storage.get_run_storage_id() if isinstance(storage, SqlRunStorage) else ""
    location = origin.location_name if origin else "mirror_assets"
    return f"{location}{f'.{name}' if name else ''} of {known}"


def mirror_of_run(context: dg.OpExecutionContext, name: str) -> str:
    """Return the name of the mirror `name` in the code location of this run."""
    origin = context.run.remote_job_origin
    return mirror_name(context.instance, origin.repository_origin.code_location_origin if origin else None, name)


def location_label(run: dg.DagsterRun) -> str | None:
    """Return the label of the run's code location: Dagster stores it as a tag, but leaves it out of `run.tags`."""
    return run.tags_for_storage().get(REPOSITORY_LABEL_TAG)


def mirror_tags(config: Config) -> dict[str, str]:
    """Return the tag of the scheduled runs of a configuration."""
    return {MIRROR_TAG: tables_digest([config.landing_zone.model_dump_json(), *config.tables])}


def tag_failing(instance: dg.DagsterInstance, job: str, location: Mapping[str, str], tables: Sequence[str]) -> None:
    """Tag the running runs of the job that mirrors with the tables that fail, `none` once they are fixed.

    A run that mirrors many tables is no failed run because of one. `location` selects the runs of a code location.
    """
    named = ", ".join(tables[:_NAMED]) or "none"
    text = named if len(tables) <= _NAMED else f"{len(tables)} tables: {named}, …"
    running = dg.RunsFilter(job_name=job, tags=dict(location), statuses=[dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(running):
        if run.tags.get(FAILING_TAG, "none") != text:
            instance.add_run_tags(run.run_id, {FAILING_TAG: text})


def require_own_assets(instance: dg.DagsterInstance, run: dg.DagsterRun, keys: Sequence[dg.AssetKey]) -> None:
    """Raise SettingError if a running run of another code location materialized one of these assets last."""
    here = location_label(run)
    newest = {event.run_id: key for key, event in instance.get_latest_materialization_events(keys).items() if event}
    if here is None or not newest:
        return
    for other in instance.get_runs(dg.RunsFilter(run_ids=list(newest), statuses=[dg.DagsterRunStatus.STARTED])):
        label = location_label(other)
        if label is not None and label != here:
            raise LOCATION_SHARED(
                asset=newest[other.run_id].to_user_string(), location=label.rpartition("@")[2], run=other.run_id
            )


# A step waits this long for another run that works on the table.
WAIT_SECONDS = 120.0


def failure(error: MirrorError, key: SliceKey | None = None) -> dg.Failure:
    """Return the error as Dagster shows it: what happened, its code, the next step, and a link to its documentation."""
    metadata: dict[str, MetadataItem] = {
        **error.labels,
        "next_step": error.next_step,
        DOCS_URL: link_item(error_link(error.code.value)),
    }
    if key is not None:
        metadata["slice"] = str(key)
    return dg.Failure(
        description=str(error), metadata=metadata, allow_retries=isinstance(error, RetryError | UnknownOutcome)
    )


INTERRUPTS = (KeyboardInterrupt, dg.DagsterExecutionInterruptedError)
STOPPED = "Stopped by a person. Nothing is lost: the next run continues after the last slice that has landed."


def cancel(context: dg.OpExecutionContext, text: str) -> NoReturn:
    """End the run as canceled, with a sentence: nothing has failed. Raises dagster.Failure."""
    run = context.instance.get_run_by_id(context.run_id)
    if run is not None:
        context.instance.report_run_canceling(run, text)
    raise dg.Failure(text, allow_retries=False)


@contextmanager
def stopping(context: dg.OpExecutionContext) -> Iterator[None]:
    """End a step that a person interrupts with one sentence, and its run as canceled. Raises dagster.Failure.

    An interrupt without such a request, as from a machine that shuts down, is raised again: Dagster may retry the run.
    """
    try:
        yield
    except INTERRUPTS:
        run = context.instance.get_run_by_id(context.run_id)
        if run is not None and COMMAND_TAG in run.tags:
            context.instance.report_run_canceling(run, STOPPED)
        elif run is None or run.status is not dg.DagsterRunStatus.CANCELING:
            raise
        raise dg.Failure(STOPPED, allow_retries=False) from None


@contextmanager
def failing() -> Iterator[None]:
    """Fail the step with the error's own message. Raises dagster.Failure."""
    try:
        yield
    except MirrorError as error:
        raise failure(error) from error
