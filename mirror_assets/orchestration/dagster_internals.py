"""All that this package uses of Dagster beside its public interface. A new Dagster version may change it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import dagster as dg
from dagster._check import CheckError
from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
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
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.tags import MAX_RETRIES_TAG, PARTITION_NAME_TAG, REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

__all__ = [
    "COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES",
    "IMPLICIT_ASSET_JOB_NAME",
    "MAX_RETRIES_TAG",
    "PARTITION_NAME_TAG",
    "REPOSITORY_LABEL_TAG",
    "SINGLETON_REPOSITORY_NAME",
    "AssetCheckExecutionRecord",
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
]

Job: TypeAlias = dg.JobDefinition | UnresolvedAssetJobDefinition


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
