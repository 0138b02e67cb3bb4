"""A repository that builds only jobs of ops until something else is requested.

The process of a resident or scheduled run needs none of the assets: with hundreds of tables they cost seconds and
hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

import dagster as dg

from mirror_assets.orchestration.dagster_internals import (
    SINGLETON_REPOSITORY_NAME,
    DefinitionsLoadContext,
    DefinitionsLoadType,
    Job,
)


def is_for_a_run() -> bool:
    """Return whether Dagster asks for definitions that a code server has loaded before, as for a run."""
    context = DefinitionsLoadContext
    return context.is_set() and context.get().load_type is DefinitionsLoadType.RECONSTRUCTION


def jobs_first(jobs: Callable[[], Sequence[Job]], whole: Callable[[], dg.Definitions]) -> dg.RepositoryDefinition:
    """Return the repository of the definitions `whole`, which are made when more is asked for than a job of ops."""
    return dg.RepositoryDefinition(SINGLETON_REPOSITORY_NAME, repository_data=_JobsFirst(jobs, whole))


class _JobsFirst(dg.RepositoryData):
    def __init__(self, jobs: Callable[[], Sequence[Job]], whole: Callable[[], dg.Definitions]) -> None:
        self._jobs, self._make = jobs, whole

    @cached_property
    def _of_ops(self) -> Mapping[str, dg.JobDefinition]:
        return {job.name: job for job in self._jobs() if isinstance(job, dg.JobDefinition)}

    @cached_property
    def _whole(self) -> dg.RepositoryDefinition:
        return self._make().get_repository_def()

    def get_job(self, job_name: str) -> dg.JobDefinition:
        return self._of_ops.get(job_name) or self._whole.get_job(job_name)

    def has_job(self, job_name: str) -> bool:
        return job_name in self._of_ops or self._whole.has_job(job_name)

    def get_all_jobs(self) -> Sequence[dg.JobDefinition]:
        return self._whole.get_all_jobs()

    def get_top_level_resources(self) -> Mapping[str, dg.ResourceDefinition]:
        return self._whole.get_top_level_resources()

    def get_env_vars_by_top_level_resource(self) -> Mapping[str, AbstractSet[str]]:
        return self._whole.get_env_vars_by_top_level_resource()

    def get_all_schedules(self) -> Sequence[dg.ScheduleDefinition]:
        return self._whole.schedule_defs

    def get_all_sensors(self) -> Sequence[dg.SensorDefinition]:
        return self._whole.sensor_defs

    def get_source_assets_by_key(self) -> Mapping[dg.AssetKey, dg.SourceAsset]:
        return self._whole.source_assets_by_key

    def get_assets_defs_by_key(self) -> Mapping[dg.AssetKey, dg.AssetsDefinition]:
        return self._whole.assets_defs_by_key

    def get_asset_checks_defs_by_key(self) -> Mapping[dg.AssetCheckKey, dg.AssetChecksDefinition]:
        return self._whole.asset_checks_defs_by_key
