"""The Spark session as a Dagster resource, on dagster-pyspark's: it starts when a step first asks for it."""

from __future__ import annotations

from dagster_pyspark import LazyPySparkResource

from mirror_assets.config import Config
from mirror_assets.mirroring.zone import session_settings


def spark_resource(config: Config) -> LazyPySparkResource:
    """The session of this configuration. It outlives the run, so the next run in the process starts warm."""
    return LazyPySparkResource(spark_config=session_settings(config))
