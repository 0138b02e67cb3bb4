"""What kind of run a check is part of."""

import dagster as dg

from mirror_assets.assets.names import RANGE_START

_PARTITION = "dagster/partition"


def is_slice_run(context: dg.AssetCheckExecutionContext) -> bool:
    """Whether the run is for slices of a table; else it is one of checks only."""
    return RANGE_START in context.run.tags or _PARTITION in context.run.tags
