"""Records a failed run when a table begins to fail, because the run that mirrors it continues with other tables.

Otherwise Dagster's pages of runs would show no failure, and its run failure sensors would not fire.
"""

from __future__ import annotations

import dagster as dg

from mirror_assets.errors import MirrorError
from mirror_assets.landing.names import TableName
from mirror_assets.orchestration.dagster_internals import (
    MAX_RETRIES_TAG,
    PARTITION_NAME_TAG,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
    make_new_run_id,
)
from mirror_assets.orchestration.fixed_config import fixed_config
from mirror_assets.orchestration.mirror_assets import MirrorAssets

TABLE_FAILED = "table_failed"


def table_failed_job(assets: MirrorAssets) -> dg.JobDefinition:
    """Return the job that the recorded runs belong to, with a partition for each table."""

    @dg.op(
        name=assets.full_name("table_failed_op"),
        description="Nothing runs here: the message of the run says what failed.",
    )
    def table_failed_op() -> None:
        raise dg.Failure(
            "Nothing to run: the mirror records a failed run of this job when a table begins to fail.",
            allow_retries=False,
        )

    @dg.job(
        name=assets.full_name(TABLE_FAILED),
        description="Has a failed run for each new failure of a table. Don't launch it.",
        partitions_def=dg.StaticPartitionsDefinition([str(name) for name in assets.config.names]),
        **fixed_config(assets),
    )
    def table_failed() -> None:
        table_failed_op()

    return table_failed


def record_failed_run(
    instance: dg.DagsterInstance, repository: RemoteRepositoryOrigin, job: str, table: TableName, error: MirrorError
) -> None:
    """Record a failed run of the job for the table, with the error's message. No process starts."""
    run = instance.add_run(
        dg.DagsterRun(
            job_name=job,
            run_id=make_new_run_id(),
            tags={PARTITION_NAME_TAG: str(table), MAX_RETRIES_TAG: "0"},
            remote_job_origin=RemoteJobOrigin(repository, job),
        )
    )
    instance.report_run_failed(run, str(error))
