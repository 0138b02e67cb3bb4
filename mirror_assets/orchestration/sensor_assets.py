"""Sensors that Dagster shows on the pages of the groups whose assets their runs materialize.

A page lists a sensor if the sensor selects the asset, or starts a job of assets. The mirror's job has ops in place of
assets, since tables differ in their partitions. Dagster refuses a sensor that names both a job and assets, but the
snapshot of a sensor has a field for each; the code server fills both for a sensor whose job it has made from assets.
"""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

from mirror_assets.orchestration.dagster_internals import Job


class AssetJobSensor(dg.SensorDefinition):
    """A sensor that starts runs of a job of ops, shown on the pages of the assets of `groups`.

    A selection of assets by name would be a query of many lines on the sensor's page.
    """

    groups: Collection[str] = ()

    @property
    def has_anonymous_job(self) -> bool:
        """Whether the snapshot takes its assets from `job`."""
        return True

    @property
    def job(self) -> Job:
        """The assets of the groups, as a job that is never started."""
        return dg.define_asset_job(f"{self.name}_assets", dg.AssetSelection.groups(*self.groups, include_sources=True))
