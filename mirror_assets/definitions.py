"""All assets, checks, sensors, jobs and resources, from mirror.yaml. Read this first."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

import dagster as dg

import mirror_assets.encode  # noqa: F401 first: without a supported Spark, its error says how to get one
from mirror_assets.config.load import MirrorSource, load_mirror
from mirror_assets.config.model import Config
from mirror_assets.feature import Feature, SliceCheck
from mirror_assets.orchestration.assets import table_assets
from mirror_assets.orchestration.check_runs import check_definitions
from mirror_assets.orchestration.dagster_internals import (
    SINGLETON_REPOSITORY_NAME,
    DefinitionsLoadContext,
    DefinitionsLoadType,
    Job,
)
from mirror_assets.orchestration.jobs import build_jobs
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_status import status_asset
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.schedules import job_schedules
from mirror_assets.orchestration.sensors import mirror_sensor, replicator_sensor
from mirror_assets.orchestration.translator import MirrorTranslator
from mirror_assets.process import search_rarely

# Single-run backfills have been beta for years, and Dagster would say so once for each table.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
_NEWEST: list[tuple[dict[str, object], dg.Definitions]] = []


def build_definitions(
    source: MirrorSource = None,
    *,
    translator: MirrorTranslator | None = None,
    name: str = "",
    spark: str | None = None,
    features: Sequence[Feature | type[Feature] | SliceCheck] = (),
) -> dg.Definitions:
    """Return the assets, checks, jobs, sensors, schedules and resources of a mirror; reads no source, starts no Spark.

    `source` is a mirror.yaml: its path, the same settings as a mapping, or a `Config`; by default `$MIRROR_CONFIG`, or
    `mirror.yaml` in the current folder.
    `translator` maps tables to asset definitions. `name` is the prefix of everything that is no asset, so that the
    definitions can be merged with others. `spark` is the key of a PySpark resource of the project, which replaces the
    mirror's own. `features` are checks and features of the project, beside those that the setting `features` names.
    Raises CONFIG_MISSING and MISTAKES, and SettingError if two assets have one key.
    """
    config = load_mirror(source).with_features(features)
    assets = MirrorAssets(config, translator or MirrorTranslator(), name, spark)
    assets.require_distinct_keys()
    tables = config.all_tables()
    jobs = build_jobs(assets)
    stand_in = [] if config.mirror_place else [replicator_sensor(assets)]
    asset_checks = [checks for table in tables for checks in check_definitions(assets, table)]
    return dg.Definitions(
        assets=[*(asset for table in tables for asset in table_assets(assets, table)), status_asset(assets)],
        asset_checks=asset_checks,
        sensors=[mirror_sensor(assets), *stand_in],
        schedules=job_schedules(assets, {job.name: job for job in jobs}),
        jobs=jobs,
        resources=resources(assets),
    )


@dg.definitions  # type: ignore[arg-type]  # a repository will do; the annotation lags
def defs() -> dg.Definitions | dg.RepositoryDefinition:
    """The definitions of the configuration that MIRROR_CONFIG names, or of ./mirror.yaml.

    A code server asks twice whenever it loads them: for what they are, and for themselves. The process of a run asks
    once, and for most runs nothing but its job is made.
    """
    search_rarely()
    config = load_mirror()
    context = DefinitionsLoadContext
    is_for_a_run = context.is_set() and context.get().load_type is DefinitionsLoadType.RECONSTRUCTION
    if not _NEWEST and is_for_a_run:
        return jobs_first(lambda: build_jobs(MirrorAssets(config)), lambda: _built(config))
    return _built(config)


def _built(config: Config) -> dg.Definitions:
    """Return the definitions, which are kept until the configuration changes."""
    settings = config.model_dump()
    if not _NEWEST or _NEWEST[0][0] != settings:
        # Steps of one run share the Spark session of its process (docs/decisions/0004).
        built = dg.Definitions.merge(build_definitions(config), dg.Definitions(executor=dg.in_process_executor))
        _NEWEST[:] = [(settings, built)]
    # They live as long as the process. With many tables, visiting them takes most of a garbage collection.
    gc.freeze()
    return _NEWEST[0][1]


def jobs_first(jobs: Callable[[], Sequence[Job]], whole: Callable[[], dg.Definitions]) -> dg.RepositoryDefinition:
    """Return the repository of the definitions `whole`, which are made when more is asked for than a job of ops."""
    return dg.RepositoryDefinition(SINGLETON_REPOSITORY_NAME, repository_data=_JobsFirst(jobs, whole))


class _JobsFirst(dg.RepositoryData):
    """Builds only jobs of ops until something else is requested.

    The process of a resident or scheduled run needs none of the assets: with hundreds of tables they cost seconds and
    hundreds of megabytes.
    """

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
