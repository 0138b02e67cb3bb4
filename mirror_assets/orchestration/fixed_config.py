"""Resources, executor and logger with fixed configuration, for jobs.

Otherwise each launchpad would begin with the configuration of every resource, and Dagster's daemon would read its
schema each minute: half of the definition of a table's job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import dagster as dg

from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.resources import resources


class Fixed(TypedDict):
    """The arguments of a job that need no configuration."""

    resource_defs: Mapping[str, dg.ResourceDefinition]
    executor_def: dg.ExecutorDefinition
    logger_defs: Mapping[str, dg.LoggerDefinition]


def fixed_config(assets: MirrorAssets) -> Fixed:
    """Return a job's resources, executor and logger, with their configuration fixed.

    With a PySpark resource of the project, all resources are those of the project's definitions: Dagster takes all or
    none from a job.
    """
    found = (
        {}
        if assets.spark
        else {
            name: one if isinstance(one, dg.ResourceDefinition) else dg.ResourceDefinition.hardcoded_resource(one)
            for name, one in resources(assets).items()
        }
    )
    return Fixed(
        resource_defs=found,
        executor_def=dg.in_process_executor.configured({}),
        logger_defs={"console": dg.colored_console_logger.configured({})},
    )
