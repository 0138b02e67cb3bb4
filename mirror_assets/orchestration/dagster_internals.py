"""All that this package uses of Dagster beside its public interface. A new Dagster version may change it.

Its test names what a version has changed, and which module uses it.
"""

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import dagster as dg
from dagster._check import CheckError
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.events import AssetObservationData, StepMaterializationData
from dagster._core.remote_origin import (
    CodeLocationOrigin,
    GrpcServerCodeLocationOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.storage.asset_check_execution_record import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    AssetCheckExecutionRecord,
)
from dagster._core.storage.db_io_manager import TableSlice
from dagster._core.storage.event_log.base import AssetRecord
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    HIDDEN_TAG_PREFIX,
    MAX_RETRIES_TAG,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    REPOSITORY_LABEL_TAG,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from sqlalchemy import Connection, Engine, create_engine

__all__ = [
    "ASSET_PARTITION_RANGE_END_TAG",
    "ASSET_PARTITION_RANGE_START_TAG",
    "COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES",
    "DATA_VERSION_TAG",
    "HIDDEN_TAG_PREFIX",
    "IMPLICIT_ASSET_JOB_NAME",
    "MAX_RETRIES_TAG",
    "PARTITION_NAME_TAG",
    "PRIORITY_TAG",
    "REPOSITORY_LABEL_TAG",
    "SINGLETON_REPOSITORY_NAME",
    "AssetCheckExecutionRecord",
    "AssetEvent",
    "AssetJobSensor",
    "AssetRecord",
    "CheckError",
    "CodeLocationOrigin",
    "DefinitionsLoadContext",
    "DefinitionsLoadType",
    "GrpcServerCodeLocationOrigin",
    "Job",
    "LoadableTargetOrigin",
    "ManagedGrpcPythonEnvCodeLocationOrigin",
    "RemoteJobOrigin",
    "RemoteRepositoryOrigin",
    "SqlRunStorage",
    "SqliteEventLogStorage",
    "TableSlice",
    "ephemeral_instance",
    "keep_connections",
    "log_asset_event",
]

Job: TypeAlias = dg.JobDefinition | UnresolvedAssetJobDefinition
AssetEvent: TypeAlias = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation
# Members of exported classes that Dagster's documentation doesn't have.
UNDOCUMENTED_MEMBERS = {
    "DagsterInstance": (
        "add_run_tags",
        "code_server_reload_timeout",
        "compute_log_manager",
        "create_run_for_job",
        "event_log_storage",
        "get_concurrency_config",
        "get_daemon_statuses",
        "get_latest_materialization_events",
        "get_materialized_partitions",
        "get_paginated_dynamic_partitions",
        "get_records_for_run",
        "get_run_ids",
        "get_runs",
        "report_run_canceled",
        "report_run_canceling",
        "report_run_failed",
        "run_storage",
        "storage_directory",
    ),
    "DagsterEvent": ("asset_materialization", "step_failure_data", "step_materialization_data"),
    "DagsterLogManager": ("log_dagster_event",),
    "DagsterRun": ("asset_check_selection", "asset_selection", "remote_job_origin", "tags_for_storage"),
    "Definitions": ("get_repository_def", "resolve_job_def"),
    "SensorDefinition": ("has_anonymous_job", "job"),
    "SensorEvaluationContext": ("code_location_origin",),
}


def ephemeral_instance() -> dg.DagsterInstance:
    """Return an instance in memory for a command that works on several tables at once.

    Of its two databases, Dagster gives only the event log a lock. In the other, threads that record runs and tags at
    once get the error "database table is locked", for which SQLite doesn't wait in memory.
    """
    instance, lock = dg.DagsterInstance.ephemeral(), threading.RLock()
    storage = instance.run_storage
    assert isinstance(storage, SqlRunStorage)  # noqa: S101 the one in memory is
    connect = storage.connect

    @contextmanager
    def connect_alone() -> Iterator[object]:
        with lock, connect() as connection:
            yield connection

    storage.connect = connect_alone  # type: ignore[assignment,method-assign]
    return instance


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Let the event log keep its connections to SQLite until it is disposed: to the index, and to the newest run.

    Dagster opens a connection for each statement, compiles its SQL each time, and asks for each result of a check which
    tables exist; SQLite tidies up whenever the last connection closes. Together that is 8 ms of a processor for a
    result, and 2 ms without. A file that was replaced is opened again.
    """
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage) or "_connect" in vars(storage):
        return
    connect, kept = storage._connect, dict[bool, tuple[str, int, Engine]]()  # noqa: SLF001 there is no public way

    @contextmanager
    def connect_again(shard: str) -> Iterator[Connection]:
        path = Path(storage.path_for_shard(shard))
        if shard not in storage._initialized_dbs or not path.exists():  # noqa: SLF001 as above
            with connect(shard) as connection:
                yield connection
            return
        with storage._db_lock:  # noqa: SLF001 as above
            found, known = (str(path), path.stat().st_ino), kept.get(shard == INDEX_SHARD_NAME)
            if known is None or known[:2] != found:
                if known is not None:
                    known[-1].dispose()
                engine = create_engine(
                    storage.conn_string_for_shard(shard),
                    pool_size=1,
                    connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
                )
                known = kept[shard == INDEX_SHARD_NAME] = (*found, engine)
            with known[-1].begin() as connection:
                yield connection

    dispose, has_table, found_tables = storage.dispose, storage.has_table, set[str]()

    def dispose_all() -> None:
        for *_, engine in kept.values():
            engine.dispose()
        dispose()

    def has_table_still(name: str) -> bool:
        if name not in found_tables and has_table(name):
            found_tables.add(name)
        return name in found_tables

    storage._connect = connect_again  # type: ignore[method-assign]  # noqa: SLF001 as above
    storage.dispose = dispose_all  # type: ignore[method-assign]
    storage.has_table = has_table_still  # type: ignore[assignment,method-assign]


def log_asset_event(context: dg.OpExecutionContext, event: AssetEvent) -> None:
    """Record the event in the run, and pass it to the loggers of the run.

    `context.log_event` does the same, but adds the handles and tags of the step twice over, a third of the stored
    bytes, and keeps each event in memory until the step ends.
    """
    data: StepMaterializationData | AssetObservationData | dg.AssetCheckEvaluation
    asset = event.asset_key.to_user_string()
    if isinstance(event, dg.AssetMaterialization):
        kind, data = dg.DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(event)
        message = f"Materialized {asset}."
    elif isinstance(event, dg.AssetObservation):
        kind, data = dg.DagsterEventType.ASSET_OBSERVATION, AssetObservationData(event)
        message = f"Observed {asset}."
    else:
        kind, data = dg.DagsterEventType.ASSET_CHECK_EVALUATION, event
        message = f"Check {event.check_name} of {asset} {'passed' if event.passed else 'did not pass'}."
    recorded = dg.DagsterEvent(kind.value, context.job_name, event_specific_data=data)
    context.log.log_dagster_event(logging.DEBUG, message, recorded)


class AssetJobSensor(dg.SensorDefinition):
    """A sensor that starts runs of a job of ops, shown on the pages of the assets of `groups`.

    A page lists a sensor if the sensor selects the asset, or starts a job of assets. The mirror's job has ops in place
    of assets, since tables differ in their partitions. Dagster refuses a sensor that names both a job and assets, but
    the snapshot of a sensor has a field for each; the code server fills both for a sensor whose job it has made from
    assets. A selection of assets by name would be a query of many lines on the sensor's page.
    """

    groups: Collection[str] = ()

    @property
    def has_anonymous_job(self) -> bool:
        """Whether the snapshot takes its assets from `job`."""
        return True

    @property
    def job(self) -> Job:
        """The assets of the groups, as a job that is never started."""
        return dg.define_asset_job(f"{self.name}_assets", dg.AssetSelection.groups(*self.groups, include_sources=True))
