"""All assets, checks, sensors, jobs and resources, from mirror.yaml. Read this first."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence

import dagster as dg

import mirror_assets.encode  # noqa: F401 first: without a supported Spark, its error says how to get one
from mirror_assets.config.load import load_config
from mirror_assets.config.model import Config
from mirror_assets.feature import Feature, SliceCheck
from mirror_assets.garbage import search_rarely
from mirror_assets.orchestration.assets import table_assets
from mirror_assets.orchestration.batch_sensor import mirror_sensor
from mirror_assets.orchestration.check_steps import check_definitions
from mirror_assets.orchestration.jobs import build_jobs
from mirror_assets.orchestration.jobs_first import is_for_a_run, jobs_first
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.mirror_status import status_asset
from mirror_assets.orchestration.replicator_sensor import replicator_sensor
from mirror_assets.orchestration.resources import resources
from mirror_assets.orchestration.schedules import job_schedules
from mirror_assets.orchestration.translator import MirrorTranslator

# Single-run backfills have been beta for years, and Dagster would say so once for each table.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
_NEWEST: list[tuple[dict[str, object], dg.Definitions]] = []


def build_definitions(
    config: Config,
    *,
    translator: MirrorTranslator | None = None,
    name: str = "",
    spark: str | None = None,
    features: Sequence[Feature | SliceCheck] = (),
) -> dg.Definitions:
    """Return the assets, checks, jobs, sensors, schedules and resources of a mirror; reads no source, starts no Spark.

    `translator` maps tables to asset definitions. `name` is the prefix of everything that is no asset, so that the
    definitions can be merged with others. `spark` is the key of a PySpark resource of the project, which replaces the
    mirror's own. `features` are checks and features of the project, beside those that the setting `features` names.
    Raises SettingError if two assets have one key.
    """
    config = config.with_features(features)
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
    config = load_config()
    if not _NEWEST and is_for_a_run():
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
