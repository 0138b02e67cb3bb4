"""Spark sessions as a Dagster resource, on dagster-pyspark's: each starts when a step first asks for it."""

from __future__ import annotations

from dagster_pyspark import LazyPySparkResource
from pydantic import Field
from pyspark import SparkContext
from pyspark.sql import SparkSession

from mirror_assets.config import Config
from mirror_assets.mirroring.zone import SparkSettings, spark_reach


class SparkSessions(LazyPySparkResource):  # type: ignore[misc]  # it has no types
    """Sessions on one Spark context, which outlives the run, so the next run in the process starts warm.

    Dagster stores a resource's values and shows them: here they only refer to the environment, and a session takes
    what stands there when it opens.

    .. code-block:: python

        SparkSessions(spark_config={"spark.hadoop.fs.s3a.secret.key": "${S3_SECRET}"}).open().range(1).count()
    """

    spark_config: dict[str, str] = Field(
        default_factory=dict, description="Settings beside this project's own; ${NAME} is an environment variable."
    )
    reach: dict[str, str] = Field(
        default_factory=dict, description="How Spark reaches OneLake; ${env.NAME} is Hadoop's reference."
    )

    def open(self, owner: str | None = None) -> SparkSession:
        """The owner's session, or a new one. Raises VariableUnset, PackageRefused and SparkNotStarted."""
        return SparkSettings(self.reach, self.spark_config).open(owner)

    @property
    def spark_session(self) -> SparkSession:
        """One session for all who ask for it; no table's mirroring uses it."""
        return self.open("the resource")

    @property
    def spark_context(self) -> SparkContext:
        """The context of all sessions."""
        return self.spark_session.sparkContext


def spark_resource(config: Config) -> SparkSessions:
    """The sessions of this configuration."""
    return SparkSessions(spark_config=dict(config.spark.settings), reach=spark_reach(config))
