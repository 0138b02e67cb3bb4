"""All that this package uses of Dagster beside its public interface. A new Dagster version may change it."""

from dagster._check import CheckError
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.remote_origin import (
    CodeLocationOrigin,
    GrpcServerCodeLocationOrigin,
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, TickStatus
from dagster._core.storage.asset_check_execution_record import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    AssetCheckExecutionRecord,
)
from dagster._core.storage.db_io_manager import TableSlice
from dagster._core.storage.event_log.base import AssetRecord
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.tags import (
    PARTITION_NAME_TAG,
    REPOSITORY_LABEL_TAG,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

__all__ = [
    "COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES",
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
    "InstigatorState",
    "InstigatorStatus",
    "InstigatorType",
    "LoadableTargetOrigin",
    "ManagedGrpcPythonEnvCodeLocationOrigin",
    "RemoteJobOrigin",
    "RemoteRepositoryOrigin",
    "SqlEventLogStorage",
    "SqlRunStorage",
    "SqliteEventLogStorage",
    "TableSlice",
    "TickStatus",
    "UnresolvedAssetJobDefinition",
]
